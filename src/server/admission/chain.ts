/** The admission chain: every mutating plug-in in order, later every validating one in the same order. */
import type { AdmissionAttributes, AdmissionPlugin } from './plugin.ts';

/** Runs the mutating plug-ins that match. Resolves at once (undefined) when none has to be waited for. */
export function runMutating(
  plugins: readonly AdmissionPlugin[],
  attributes: AdmissionAttributes,
): Promise<void> | void {
  return run(plugins, { attributes, phase: 'mutate', from: 0 });
}

/** Runs the validating plug-ins that match. */
export function runValidating(
  plugins: readonly AdmissionPlugin[],
  attributes: AdmissionAttributes,
): Promise<void> | void {
  return run(plugins, { attributes, phase: 'validate', from: 0 });
}

interface Pass {
  readonly attributes: AdmissionAttributes;
  readonly phase: 'mutate' | 'validate';
  readonly from: number;
}

/** Stays synchronous as long as the plug-ins do: most writes are decided without a turn of the event loop. */
function run(plugins: readonly AdmissionPlugin[], pass: Pass): Promise<void> | void {
  const { attributes, phase } = pass;
  for (let i = pass.from; i < plugins.length; i++) {
    const plugin = plugins[i]!;
    const act = plugin[phase];
    if (!act || !plugin.matches(attributes.operation, attributes.info, attributes.subresource)) continue;
    const pending = act.call(plugin, attributes);
    if (pending) return pending.then(() => run(plugins, { ...pass, from: i + 1 }));
  }
}
