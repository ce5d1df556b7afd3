/** The launchers of one agent: one for each Pod, and what is asked of all of them. */
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVmi } from '@coracle/kubevirt/kinds/kubevirt';
import type { Logger } from '@coracle/runtime/log/log';
import type { AgentEnvironment } from '../environment.ts';
import type { MeasuredGuest } from '../guest/guest-metrics.ts';
import type { SentGuest } from '../migration/stream-stats.ts';
import { Launcher } from './launcher.ts';
import type { VmRecord } from './vm-record.ts';

/** A guest that is asked to shut down. */
export interface StoppingGuest extends ObjectKey {
  readonly node: string;
  /** What is left of its grace period. */
  readonly leftMs: number;
}

/** Guests that are asked for their figures at one time. */
const MAX_MEASURED = 1_000;

/** Launchers by the UID of their Pod. */
export class LauncherSet {
  readonly #nodeName: string;
  readonly #log: Logger;
  readonly #byUid = new Map<string, Launcher>();
  readonly #runs = new Set<Promise<void>>();

  constructor(nodeName: string, log: Logger) {
    this.#nodeName = nodeName;
    this.#log = log;
  }

  /** Makes the launcher of a Pod, or of what an earlier agent left of one, and lets it run. */
  launch(
    environment: AgentEnvironment,
    podUid: string,
    from: { readonly pod: ReadonlyPod } | { readonly record: VmRecord },
  ): Launcher {
    const launcher = new Launcher(environment, { ...from, others: () => this.all() });
    this.#byUid.set(podUid, launcher);
    const run = launcher
      .run()
      .catch((error: Error) => {
        if (environment.signal.aborted) return;
        this.#log.error('launcher failed', { podUid, error: error.stack ?? error.message });
      })
      .finally(() => {
        this.#runs.delete(run);
        if (this.#byUid.get(podUid) === launcher && !environment.signal.aborted) this.#byUid.delete(podUid);
      });
    this.#runs.add(run);
    return launcher;
  }

  get size(): number {
    return this.#byUid.size;
  }
  get(podUid: string): Launcher | undefined {
    return this.#byUid.get(podUid);
  }
  all(): Iterable<Launcher> {
    return this.#byUid.values();
  }

  /** The launcher whose guest goes by this name, here and now. */
  find(namespace: string, name: string): Launcher | undefined {
    for (const launcher of this.all()) {
      const { record } = launcher;
      // A guest that is still on its way here is asked for at its source, one that has gone at its target.
      const { phase } = record?.migration ?? {};
      if (phase === 'receiving' || phase === 'handing-over' || phase === 'feeding') continue;
      if (record?.namespace === namespace && record.name === name && !record.result && launcher.guest) return launcher;
    }
    return undefined;
  }

  findPod(namespace: string, name: string): Launcher | undefined {
    return [...this.all()].find(({ podKey }) => podKey.namespace === namespace && podKey.name === name);
  }

  sending(): SentGuest[] {
    return [...this.all()].flatMap(({ record, stream }) => {
      if (!record || !stream) return [];
      const { namespace, name } = record;
      return [{ labels: { node: this.#nodeName, namespace, name }, figures: stream }];
    });
  }

  /** What the guests take now; of the first 1,000. */
  async measured(): Promise<MeasuredGuest[]> {
    const launchers = [...this.all()].slice(0, MAX_MEASURED);
    return (await Promise.all(launchers.map((launcher) => launcher.measured()))).flatMap((guest) => guest ?? []);
  }

  stopping(): StoppingGuest[] {
    return [...this.all()].flatMap(({ stopping }) => (stopping ? [{ node: this.#nodeName, ...stopping }] : []));
  }

  observeVmi(vmi: ReadonlyVmi): void {
    for (const launcher of this.all()) launcher.observeVmi(vmi);
  }

  /** Each looks at what it depends on again. */
  lookAgain(): void {
    for (const launcher of this.all()) launcher.lookAgain();
  }

  /** Tells the launchers of all other Pods that theirs are gone. */
  keepOnly(podUids: ReadonlySet<string | undefined>): void {
    for (const [uid, launcher] of this.#byUid) if (!podUids.has(uid)) launcher.observePod(undefined);
  }

  requestStop(): void {
    for (const launcher of this.all()) launcher.requestStop();
  }

  /** Ends every guest at once. */
  async forceStop(): Promise<void> {
    await Promise.all([...this.all()].map((launcher) => launcher.forceStop()));
  }

  /** Whether a guest has not ended yet. */
  get isBusy(): boolean {
    return [...this.all()].some((launcher) => launcher.guest && !launcher.record?.result);
  }

  /** Whether an end is not reported yet. */
  get owesReports(): boolean {
    return [...this.all()].some((launcher) => launcher.owesReport);
  }

  /** Whether QEMU processes run on. */
  get hasGuests(): boolean {
    return [...this.all()].some(({ record }) => record?.process && !record.result);
  }

  /** When nothing of them runs any more: after the signal of their environment. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#runs);
  }
}
