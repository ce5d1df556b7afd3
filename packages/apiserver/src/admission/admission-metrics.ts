/**
 * What admission did and how long it took, under upstream's names: its two steps, the plug-ins, calls of webhooks,
 * refusals, failures that were passed by, and checks of policies.
 */

import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Clock } from '@coracle/runtime/clock/clock';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import { createCounter, MAX_SERIES } from '@coracle/runtime/metrics/counter';
import { createHistogram, Distribution } from '@coracle/runtime/metrics/histogram';
import type { HistogramFamily, Labels, MetricFamily } from '@coracle/runtime/metrics/metric-family';
import type { AdmissionOperation } from './plugin.ts';

/** Upper bounds in seconds. */
const BOUNDS = [0.005, 0.025, 0.1, 0.5, 1, 2.5];
const WEBHOOK_BOUNDS = [...BOUNDS, 10, 25];
/** The first stands for what the clock cannot tell from nothing. */
const POLICY_BOUNDS = [0.000_000_5, 0.001, 0.01, 0.1, 1];

export type AdmissionPhase = 'mutate' | 'validate';

export type AdmissionMetrics = ReturnType<typeof createAdmissionMetrics>;

/** What is the same for all plug-ins that let one write pass: every write is counted a dozen times. */
export interface PhaseRun {
  readonly phase: AdmissionPhase;
  readonly operation: AdmissionOperation;
  readonly rejected: boolean;
}

/** `error` is what the call threw, `passedBy` that the write went on all the same. */
interface WebhookCall {
  readonly name: string;
  readonly mutating: boolean;
  readonly operation: string;
  readonly error?: unknown;
  readonly passedBy?: boolean;
  readonly ms: number;
}

interface PolicyCheck {
  readonly kind: 'validating' | 'mutating';
  readonly policy: string;
  readonly binding: string;
  readonly action: 'allow' | 'deny' | 'warn' | 'audit';
  readonly failed: boolean;
  readonly ms: number;
}

const policyChecks = (kind: PolicyCheck['kind'], name: string) => ({
  total: createCounter(`apiserver_${kind}_admission_policy_check_total`, `Conclusions of ${name}AdmissionPolicies.`),
  times: createHistogram({
    name: `apiserver_${kind}_admission_policy_check_duration_seconds`,
    help: `How long checks of ${kind} policies take.`,
    bounds: POLICY_BOUNDS,
    maxSeries: MAX_SERIES,
  }),
});

/** Counts from nothing. */
export function createAdmissionMetrics(clock: Pick<Clock, 'monotonic'>) {
  const requests = createCounter('apiserver_admission_webhook_request_total', 'Calls of admission webhooks.');
  const rejections = createCounter(
    'apiserver_admission_webhook_rejection_count',
    'Writes that admission webhooks stopped.',
  );
  const failedOpen = createCounter(
    'apiserver_admission_webhook_fail_open_count',
    'Failures of admission webhooks that writes passed by.',
  );
  const steps = new PhaseDurations();
  const plugins = new Map<{ readonly name: string }, PhaseDurations>();
  const webhookTimes = createHistogram({
    name: 'apiserver_admission_webhook_admission_duration_seconds',
    help: 'How long webhooks take to answer.',
    bounds: WEBHOOK_BOUNDS,
    maxSeries: MAX_SERIES,
  });
  const validating = policyChecks('validating', 'Validating');
  const mutating = policyChecks('mutating', 'Mutating');
  return {
    /** Where durations begin and end: monotonic milliseconds. */
    now: (): number => clock.monotonic(),
    /** A plug-in of the program has come to an end, after `ms`. */
    plugin(plugin: { readonly name: string }, ran: PhaseRun, ms: number): void {
      // Without a call where it is known: every write is counted a dozen times.
      const durations = plugins.get(plugin) ?? getOrInsert(plugins, plugin, () => new PhaseDurations());
      durations.observe(ran, ms);
    },
    /** All plug-ins of one phase have. */
    step: (ran: PhaseRun, ms: number): void => steps.observe(ran, ms),
    /** A webhook was asked. */
    webhook({ name, mutating, operation, error, passedBy = false, ms }: WebhookCall): void {
      const type = mutating ? 'admit' : 'validating';
      const denied = error instanceof ApiError;
      const code = error === undefined ? 200 : denied ? error.code : 0;
      const rejected = error !== undefined && !passedBy;
      requests.add({ name, type, operation, code: String(code), rejected: String(rejected) });
      webhookTimes.observe({ name, operation, rejected: String(rejected), type }, ms / 1000);
      if (passedBy) failedOpen.add({ name, type });
      if (!rejected) return;
      const errorType = denied ? 'no_error' : 'calling_webhook_error';
      rejections.add({ name, type, operation, error_type: errorType, rejection_code: String(code) });
    },
    /** A policy came to a conclusion through one of its bindings. */
    policy({ kind, policy, binding, action, failed, ms }: PolicyCheck): void {
      const errorType = failed ? 'invalid_error' : 'no_error';
      const labels = { policy, policy_binding: binding, enforcement_action: action, error_type: errorType };
      const checks = kind === 'validating' ? validating : mutating;
      checks.total.add(labels);
      checks.times.observe(labels, ms / 1000);
    },
    families: (): MetricFamily[] => [
      phaseFamily('step', 'How long admission takes.', steps.samples({})),
      phaseFamily(
        'controller',
        'How long admission plug-ins take.',
        [...plugins].flatMap(([{ name }, durations]) => durations.samples({ name })),
      ),
      ...[requests, rejections, failedOpen, validating.total, mutating.total].map(({ family }) => family()),
      ...[webhookTimes, validating.times, mutating.times].map(({ family }) => family()),
    ],
  };
}

const phaseFamily = (of: string, help: string, samples: HistogramFamily['samples']): HistogramFamily => ({
  name: `apiserver_admission_${of}_admission_duration_seconds`,
  help,
  type: 'histogram',
  bounds: BOUNDS,
  samples,
});

const TYPES: Readonly<Record<AdmissionPhase, string>> = { mutate: 'admit', validate: 'validate' };

/** By phase, operation and outcome. Found without putting labels together: every write passes here several times. */
class PhaseDurations {
  readonly #accepted: Record<AdmissionPhase, ByOperation> = { mutate: {}, validate: {} };
  readonly #rejected: Record<AdmissionPhase, ByOperation> = { mutate: {}, validate: {} };

  observe({ phase, operation, rejected }: PhaseRun, ms: number): void {
    const durations = (rejected ? this.#rejected : this.#accepted)[phase];
    durations[operation] ??= new Distribution(BOUNDS);
    durations[operation].observe(ms / 1000);
  }

  samples(labels: Labels): { labels: Labels; durations: Distribution }[] {
    return [this.#accepted, this.#rejected].flatMap((outcome, rejected) =>
      (['mutate', 'validate'] as const).flatMap((phase) =>
        Object.entries(outcome[phase]).map(([operation, durations]) => ({
          labels: { ...labels, operation, rejected: String(rejected === 1), type: TYPES[phase] },
          durations,
        })),
      ),
    );
  }
}

type ByOperation = { [operation in AdmissionOperation]?: Distribution };
