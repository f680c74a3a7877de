// The two classes that plugin code takes from its client's module.
import { createRequire } from "node:module";

export const { CreateosApiError, CreateosCleanupError } = createRequire(__filename)("../../index.js") as typeof import("../../index.js");
