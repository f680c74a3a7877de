// The example plugin in the plugin SDK's own harness, which hears what its commands print.
import {
  createEnvironmentTestHarness,
  type EnvironmentTestHarness,
  type PaperclipPlugin,
  type PluginDefinition,
} from "@paperclipai/plugin-sdk";
import type { InstalledPlugin } from "./paperclip_plugin.js";

type Hook<K extends keyof PluginDefinition> = NonNullable<PluginDefinition[K]>;

export function hook<K extends keyof PluginDefinition>({ definition }: PaperclipPlugin, name: K): Hook<K> {
  const found = definition[name];
  if (found === undefined) throw new Error(`The plugin has no ${name}.`);
  return found as Hook<K>;
}

/** A plugin of its own and the SDK's harness around it. */
export async function harnessed(installed: InstalledPlugin): Promise<EnvironmentTestHarness & { plugin: PaperclipPlugin }> {
  const plugin = installed.plugin.createPlugin();
  const harness = createEnvironmentTestHarness({
    manifest: installed.manifest,
    environmentDriver: {
      driverKey: "createos",
      onValidateConfig: hook(plugin, "onEnvironmentValidateConfig"),
      onProbe: hook(plugin, "onEnvironmentProbe"),
      onAcquireLease: hook(plugin, "onEnvironmentAcquireLease"),
      onResumeLease: hook(plugin, "onEnvironmentResumeLease"),
      onReleaseLease: hook(plugin, "onEnvironmentReleaseLease"),
      onDestroyLease: hook(plugin, "onEnvironmentDestroyLease"),
      onRealizeWorkspace: hook(plugin, "onEnvironmentRealizeWorkspace"),
      onExecute: hook(plugin, "onEnvironmentExecute"),
    },
  });
  await plugin.definition.setup(harness.ctx);
  return { ...harness, plugin };
}
