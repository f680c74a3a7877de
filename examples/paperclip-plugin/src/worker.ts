// What the host starts as a process of its own: newline-delimited JSON-RPC on stdin and stdout.
import { runWorker } from "@paperclipai/plugin-sdk";
import plugin from "./plugin.js";

export default plugin;

runWorker(plugin, import.meta.url);
