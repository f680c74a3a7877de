// The hooks of the environment driver "createos". One LeaseDriver serves every company and environment that the host
// has: each call brings its own configuration, and a lease's metadata tells whose it is. Nothing of a lease is kept here,
// so a worker that crashed is replaced by starting another: what the host has persisted of a lease is enough to go on.
import { definePlugin, type PaperclipPlugin, type PluginContext } from "@paperclipai/plugin-sdk";
import { LeaseDriver } from "createos-lease";

/** A plugin on a driver of its own, or on the one given. */
export function createPlugin(driver: LeaseDriver = new LeaseDriver()): PaperclipPlugin {
  /** The host, which calls no hook before setup. */
  let ctx: PluginContext;
  return definePlugin({
    // No company's configuration is kept, so that of another can't be taken for it.
    multiCompanyConfig: true,

    // There is nothing to register or to connect to.
    async setup(context) {
      ctx = context;
    },

    // A worker that answers is well. Whether an environment is, its probe tells.
    async onHealth() {
      return { status: "ok" };
    },

    async onEnvironmentValidateConfig({ config }) {
      const validation = await driver.validateConfig({ config });
      if (!validation.ok) return validation;
      // What is absent stays absent, instead of null: hosts store the answer, show it in a form made from the schema,
      // and some refuse one that holds another value where a secret belongs than they have sent.
      const present = Object.entries(validation.normalizedConfig).filter(([, value]) => value !== null);
      return { ok: true, normalizedConfig: Object.fromEntries(present) };
    },

    onEnvironmentProbe: (params) => driver.probe(params),

    onEnvironmentAcquireLease: (params) => driver.acquire(params),

    // A lease that can't be used any more comes back without an id: the host then acquires another.
    onEnvironmentResumeLease: (params) => driver.resume(params),

    onEnvironmentRealizeWorkspace: (params) => driver.realizeWorkspace(params),

    // Output goes to the host while the command runs, and all of it has before the answer does.
    onEnvironmentExecute: (params) =>
      driver.execute(params, (stream, chunk) => ctx.execution.log(stream, chunk)),

    // A receipt tells the host that nothing runs in the sandbox any more, so the provider has to have shown it.
    onEnvironmentReleaseLease: (params) => driver.release(params, false, { confirm: true }),

    onEnvironmentDestroyLease: (params) => driver.destroy(params, { confirm: true }),

    // Ends the commands that run, gives up what is being acquired, probed or resumed, and waits until all of it has been
    // cleaned up.
    onShutdown: () => driver.shutdown(),
  });
}

/** The plugin that the worker runs. */
export default createPlugin();
