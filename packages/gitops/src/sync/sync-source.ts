/** The source of a sync under one generation of its spec: asked when it is time, read, rendered, taken apart. */
import type { Clock } from '@coracle/runtime/clock/clock';
import { backoffDelay } from '@coracle/runtime/retry/backoff';
import { type Source, SourceError } from '../git/source.ts';
import { parseSource, type SourceFormat } from '../hierarchy/declare-source.ts';
import type { ParsedFiles, ParsedSource } from '../render/parse-manifests.ts';
import { render } from '../render/render.ts';
import { SyncFailure } from '../status/sync-error.ts';
import type { SyncRecorder, Trigger } from '../status/sync-metrics.ts';
import type { SourcePlan } from './check-source.ts';
import type { CommitOf, SyncReport } from './sync-report.ts';

export interface SyncSourceOptions {
  readonly source: Source;
  readonly plan: SourcePlan;
  readonly format: SourceFormat;
  readonly generation: number;
  /** Private to this sync. */
  readonly directory: string;
  readonly report: SyncReport;
  readonly clock: Clock;
  readonly metrics: Pick<SyncRecorder, 'parsed'>;
}

const RETRY = { baseMs: 1000, maxMs: 5 * 60_000, jitter: 0.1 };

export class SyncSource {
  /** Of the spec that it is for. */
  readonly generation: number;
  readonly #options: SyncSourceOptions;
  /** Of the commit that was read last: as large as its objects. */
  readonly #parsed: ParsedFiles = new Map();
  #commit: string | undefined;
  #pollAt = 0;
  #failures = 0;

  constructor(options: SyncSourceOptions) {
    this.#options = options;
    this.generation = options.generation;
  }

  /** When the origin is asked next, as `clock.monotonic()` counts. */
  get pollAt(): number {
    return this.#pollAt;
  }

  /** The commit that the origin last named, asked for when it is time; undefined while it names none: the status says why. */
  async poll(signal: AbortSignal): Promise<string | undefined> {
    const { source, plan, report, clock } = this.#options;
    if (clock.monotonic() < this.#pollAt) return this.#commit;
    this.#pollAt = clock.monotonic() + plan.periodMs;
    try {
      this.#commit = await source.resolve(signal);
      this.#failures = 0;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SourceError)) throw error;
      this.#commit = undefined;
      const backoffMs = backoffDelay(RETRY, ++this.#failures);
      // A period of an hour is for a source that answers.
      this.#pollAt = clock.monotonic() + Math.max(Math.min(plan.periodMs, RETRY.maxMs), backoffMs);
      await report.sourceFailed({ origin: plan.originOf() }, error.message, signal);
    }
    return this.#commit;
  }

  /** A commit and where it is from. */
  of(commit: string): CommitOf {
    return { origin: this.#options.plan.originOf(commit), commit };
  }

  /** What a commit declares; undefined when it cannot be read or rendered: the status says why. */
  async read(commit: string, trigger: Trigger, signal: AbortSignal): Promise<ParsedSource | undefined> {
    const { source, plan, format, report, directory, clock, metrics } = this.#options;
    const of = this.of(commit);
    let part: 'read' | 'parse' = 'read';
    let from = clock.monotonic();
    const ended = (ok: boolean): void => metrics.parsed(part, trigger, { ms: clock.monotonic() - from, ok });
    try {
      const isKnown = (path: string, id: string): boolean => this.#parsed.get(path)?.digest === id;
      const tree = await (source.readChanged?.(commit, isKnown, signal) ?? source.read(commit, signal));
      ended(true);
      part = 'parse';
      from = clock.monotonic();
      const readAll = () => source.readAll(commit, signal);
      const rendered = await render(tree, { dir: plan.dir, readAll, directory, signal });
      const parsed = parseSource(rendered.tree, { format, dir: plan.dir }, this.#parsed);
      ended(parsed.errors.length === 0);
      await report.syncing(of, rendered.message, parsed.errors, signal);
      return parsed;
    } catch (error) {
      signal.throwIfAborted();
      ended(false);
      if (error instanceof SourceError) await report.sourceFailed(of, error.message, signal);
      else if (error instanceof SyncFailure) await report.renderingFailed(of, error.errors, signal);
      else throw error;
      return undefined;
    }
  }
}
