/** How far a fill is, over all of its steps: never backwards, with the rate of the last seconds. */
import type { FillReport } from '@coracle/cluster-rules/storage/pool-calls';
import type { Clock } from '@coracle/runtime/clock/clock';

type Running = Extract<FillReport, { state: 'running' }>;

export interface FillProgress {
  begin(step: Running['step']): void;
  /** Whether more than the download is to be done, as far as the first bytes tell. */
  expect(more: boolean): void;
  downloaded(done: number, total: number | undefined): void;
  unpacked(bytes: number): void;
  converted(fraction: number): void;
  report(): Running;
}

/** Share of the download, where something comes after it. */
const DOWNLOAD_SHARE = 0.7;
/** The rate is that of a window of at least so long. */
const WINDOW_MS = 3000;

/** Starts at nothing. */
export function createFillProgress(clock: Clock): FillProgress {
  let step: Running['step'] = 'waiting';
  let more = false;
  let bytes = 0;
  let total: number | undefined;
  let fraction: number | undefined;
  let rate: number | undefined;
  let windowAt = clock.monotonic();
  let windowBytes: number | undefined;
  const advance = (next: number): void => {
    fraction = Math.min(1, Math.max(fraction ?? 0, next));
  };
  return {
    begin(next) {
      step = next;
      if (next === 'unpack' || next === 'convert') advance(DOWNLOAD_SHARE);
    },
    expect(value) {
      more = value;
    },
    downloaded(done, all) {
      bytes = done;
      total = all;
      if (all) advance((done / all) * (more ? DOWNLOAD_SHARE : 1));
      const now = clock.monotonic();
      // What an earlier attempt left was not fetched now.
      if (windowBytes === undefined) windowBytes = done;
      if (now - windowAt < WINDOW_MS) {
        if (rate === undefined && now - windowAt >= 500) rate = ((done - windowBytes) * 1000) / (now - windowAt);
        return;
      }
      rate = ((done - windowBytes) * 1000) / (now - windowAt);
      windowAt = now;
      windowBytes = done;
    },
    // How much it will be, nobody says.
    unpacked: () => advance(DOWNLOAD_SHARE),
    converted: (done) => advance(DOWNLOAD_SHARE + (1 - DOWNLOAD_SHARE) * done),
    report: () => ({
      state: 'running',
      step,
      bytes,
      ...(fraction !== undefined && { fraction }),
      ...(total !== undefined && { totalBytes: total }),
      ...(rate !== undefined && step === 'download' && { bytesPerSecond: Math.round(rate) }),
      ...(rate && total !== undefined && step === 'download' && { secondsLeft: Math.ceil((total - bytes) / rate) }),
    }),
  };
}
