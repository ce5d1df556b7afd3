/** Asks a guest, again and again, for what its probes say, as kubelet does of a container. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import type { GuestProbe } from '@coracle/kubevirt/kinds/kubevirt';
import { countOutcome, firstCount, type ProbeCount, probeSettings } from '@coracle/kubevirt/rules/probe/probe-count';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { Guest } from '../guest/guest.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { askGuest } from './ask-guest.ts';

export interface ProbeKeeper {
  /** Begins, once the instance is known. */
  look(): void;
  /** What the readiness probe says; undefined while none is known. */
  readonly isReady: boolean | undefined;
  /** The liveness probe has failed: the guest is to be ended. */
  readonly isDead: boolean;
  stop(): void;
}

type Kind = 'Readiness' | 'Liveness';

/** Nothing is asked before `look`. Results that turn wake the launcher. */
export function keepProbes(launcher: LauncherState, guest: Guest): ProbeKeeper {
  const life = createLinkedController(guest.signal);
  const results = new Map<Kind, ProbeCount['result']>();
  let begun = false;
  const begin = (kind: Kind, probe: DeepReadonly<GuestProbe> | undefined, result: ProbeCount['result']): void => {
    if (!probe) return;
    results.set(kind, result);
    const turned = (to: ProbeCount['result']): void => {
      results.set(kind, to);
      launcher.changed();
    };
    askRegularly(launcher, guest, { kind, probe, result, turned, signal: life.signal }).catch((error: Error) => {
      if (!life.signal.aborted) launcher.log.error('probe broke off', { kind, error: error.stack });
    });
  };
  return {
    look() {
      const { vmi } = launcher;
      if (begun || !vmi) return;
      begun = true;
      // Of a guest that another agent, or another node, had before nothing has changed: it is ready until it is found not to be.
      const wasReady = isConditionTrue(vmi, 'Ready');
      begin('Readiness', vmi.spec.readinessProbe, wasReady ? 'success' : 'failure');
      begin('Liveness', vmi.spec.livenessProbe, 'success');
    },
    get isReady() {
      const result = results.get('Readiness');
      return result && result === 'success';
    },
    get isDead() {
      return results.get('Liveness') === 'failure';
    },
    stop() {
      life.abort(new DOMException('the probes end', 'AbortError'));
      life.release();
    },
  };
}

async function askRegularly(
  launcher: LauncherState,
  guest: Guest,
  work: {
    readonly kind: Kind;
    readonly probe: DeepReadonly<GuestProbe>;
    readonly result: ProbeCount['result'];
    readonly turned: (to: ProbeCount['result']) => void;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { kind, probe, signal } = work;
  const { clock } = launcher.environment;
  const settings = probeSettings(probe);
  const due = (launcher.record?.startedAt ?? 0) + settings.initialDelayMs - clock.now();
  if (due > 0) await clock.sleep(due, signal);
  let count = firstCount(work.result);
  for (;;) {
    const { vmi, record } = launcher;
    if (vmi && record && canAnswer(launcher, guest)) {
      const { address } = record;
      const outcome = await askGuest(probe, { guest, vmi, address, clock, timeoutMs: settings.timeoutMs, signal });
      // What came while it was stopped says nothing of it.
      if (canAnswer(launcher, guest)) {
        if (outcome.type === 'failure')
          launcher.podEvent('Warning', 'Unhealthy', `${kind} probe failed: ${outcome.output}`);
        if (outcome.type === 'failure' && probe.guestAgentPing)
          launcher.event('Warning', 'GuestAgentPingFailed', `GuestAgentPing probe failed for VMI ${vmi.metadata.name}`);
        if (outcome.type === 'errored')
          launcher.podEvent('Warning', 'Unhealthy', `${kind} probe errored: ${outcome.message}`);
        const before = count.result;
        count = countOutcome(count, outcome, settings);
        if (count.result !== before) work.turned(count.result);
      }
    }
    await clock.sleep(settings.periodMs, signal);
  }
}

/** True while the guest runs and is this node's. */
function canAnswer(launcher: LauncherState, { state }: Guest): boolean {
  const { record } = launcher;
  if (!state.connected || state.runState !== 'running' || record?.migration || record?.saving) return false;
  return !launcher.isDeleting();
}
