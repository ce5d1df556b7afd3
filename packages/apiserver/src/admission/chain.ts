/** The admission chain: every mutating plug-in in order, later every validating one in the same order. */
import type { AdmissionMetrics, AdmissionPhase } from './admission-metrics.ts';
import type { AdmissionAttributes, AdmissionPlugin } from './plugin.ts';

/**
 * Runs the mutating plug-ins that match, and once more when a webhook or policy changed the object. Resolves at once
 * (undefined) when none has to be waited for.
 */
export function runMutating(
  plugins: readonly AdmissionPlugin[],
  attributes: AdmissionAttributes,
  metrics?: AdmissionMetrics,
): Promise<void> | void {
  const pass: Pass = { attributes, phase: 'mutate', metrics };
  return timed(pass, () => {
    const pending = run(plugins, pass);
    return pending ? pending.then(() => runAgain(plugins, pass)) : runAgain(plugins, pass);
  });
}

function runAgain(plugins: readonly AdmissionPlugin[], pass: Pass): Promise<void> | void {
  const { reinvocation } = pass.attributes;
  if (!reinvocation?.wanted) return;
  reinvocation.again = true;
  return run(plugins, pass);
}

/** Runs the validating plug-ins that match. */
export function runValidating(
  plugins: readonly AdmissionPlugin[],
  attributes: AdmissionAttributes,
  metrics?: AdmissionMetrics,
): Promise<void> | void {
  const pass: Pass = { attributes, phase: 'validate', metrics };
  return timed(pass, () => run(plugins, pass));
}

interface Pass {
  readonly attributes: AdmissionAttributes;
  readonly phase: AdmissionPhase;
  readonly metrics: AdmissionMetrics | undefined;
}

/** Stays synchronous as long as the plug-ins do: most writes are decided without a turn of the event loop. */
function run(plugins: readonly AdmissionPlugin[], pass: Pass, from = 0): Promise<void> | void {
  const { attributes, phase, metrics } = pass;
  const { operation, info, subresource } = attributes;
  // One look at the clock between two plug-ins: what is asked of `matches` in between is next to nothing.
  let began = metrics === undefined ? 0 : metrics.now();
  const note = (plugin: AdmissionPlugin, rejected: boolean): void => {
    if (metrics === undefined) return;
    const now = metrics.now();
    metrics.plugin(plugin, { phase, operation, rejected, ms: now - began });
    began = now;
  };
  let i = from;
  try {
    for (; i < plugins.length; i++) {
      const plugin = plugins[i]!;
      const act = plugin[phase];
      if (!act || !plugin.matches(operation, info, subresource)) continue;
      const pending = act.call(plugin, attributes);
      if (pending) return waited(pending, (rejected) => note(plugin, rejected)).then(() => run(plugins, pass, i + 1));
      note(plugin, false);
    }
  } catch (error) {
    note(plugins[i]!, true);
    throw error;
  }
}

/** The whole of a phase, counted as one step. */
function timed({ attributes, phase, metrics }: Pass, act: () => Promise<void> | void): Promise<void> | void {
  if (metrics === undefined) return act();
  const { operation } = attributes;
  const began = metrics.now();
  const note = (rejected: boolean): void => metrics.step({ phase, operation, rejected, ms: metrics.now() - began });
  let pending: Promise<void> | void;
  try {
    pending = act();
  } catch (error) {
    note(true);
    throw error;
  }
  return pending ? waited(pending, note) : note(false);
}

const waited = (pending: Promise<void>, note: (rejected: boolean) => void): Promise<void> =>
  pending.then(
    () => note(false),
    (error: unknown) => {
      note(true);
      throw error;
    },
  );
