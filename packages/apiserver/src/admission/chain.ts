/** The admission chain: every mutating plug-in in order, later every validating one in the same order. */
import type { AdmissionMetrics, AdmissionPhase, PhaseRun } from './admission-metrics.ts';
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
  const passed: PhaseRun = { phase, operation, rejected: false };
  // One look at the clock between two plug-ins: what is asked of `matches` in between is next to nothing.
  let began = metrics === undefined ? 0 : metrics.now();
  let i = from;
  try {
    for (; i < plugins.length; i++) {
      const plugin = plugins[i]!;
      const act = plugin[phase];
      if (!act || !plugin.matches(operation, info, subresource)) continue;
      const pending = act.call(plugin, attributes);
      if (pending) return waited(pending, notePlugin(plugin, pass, began)).then(() => run(plugins, pass, i + 1));
      if (metrics === undefined) continue;
      const ended = metrics.now();
      metrics.plugin(plugin, passed, ended - began);
      began = ended;
    }
  } catch (error) {
    notePlugin(plugins[i]!, pass, began)(true);
    throw error;
  }
}

type Note = (rejected: boolean) => void;

const notePlugin =
  (plugin: AdmissionPlugin, { attributes: { operation }, phase, metrics }: Pass, began: number): Note =>
  (rejected) =>
    metrics?.plugin(plugin, { phase, operation, rejected }, metrics.now() - began);

/** The whole of a phase, counted as one step. */
function timed({ attributes, phase, metrics }: Pass, act: () => Promise<void> | void): Promise<void> | void {
  if (metrics === undefined) return act();
  const { operation } = attributes;
  const began = metrics.now();
  const note: Note = (rejected) => metrics.step({ phase, operation, rejected }, metrics.now() - began);
  let pending: Promise<void> | void;
  try {
    pending = act();
  } catch (error) {
    note(true);
    throw error;
  }
  return pending ? waited(pending, note) : note(false);
}

const waited = (pending: Promise<void>, note: Note): Promise<void> =>
  pending.then(
    () => note(false),
    (error: unknown) => {
      note(true);
      throw error;
    },
  );
