/**
 * What `kubectl logs` shows of a launcher Pod: QEMU's own output (container `compute`) and the guest's serial line
 * (container `guest-console-log`). Both are files that grow; of a guest that has ended the last part is kept in memory.
 * Lines have no time of their own in the serial log: where one is asked for, that of the file's last change stands in.
 */
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { badRequest } from '@coracle/apimachinery/meta/status';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ApiResponse, ByteSink } from '@coracle/runtime/http/seam';
import { VM_FILES } from '../../qemu/argv.ts';

/** The last bytes of each file that are looked at, and of a file that is gone. */
const MAX_READ = 4 * 1024 * 1024;
const MAX_KEPT = 64 * 1024;
/** How often a followed file is looked at. */
const FOLLOW_MS = 250;
/** A follower that is this far behind is let go. */
const MAX_BEHIND = 4 * 1024 * 1024;

/** Where the output of each container lies; the older part of a file that was cut stands first. */
const FILES: Readonly<Record<string, readonly string[]>> = {
  compute: [`${VM_FILES.output}.1`, VM_FILES.output],
  'guest-console-log': [`${VM_FILES.serialLog}.1`, VM_FILES.serialLog],
};

/** True for the containers that have one. */
export const hasLog = (container: string): boolean => Object.hasOwn(FILES, container);

/** The last part of each log of a guest whose files are gone, by container. */
export type KeptLogs = Readonly<Record<string, Uint8Array>>;

/** Reads what will be kept when the files of a VM go. */
export async function keepLogs(directory: string): Promise<KeptLogs> {
  const kept: Record<string, Uint8Array> = {};
  for (const [container, files] of Object.entries(FILES)) {
    kept[container] = (await readTail(join(directory, files.at(-1)!), MAX_KEPT)).bytes;
  }
  return kept;
}

/** Reads the options of a log request (core/v1 PodLogOptions). Throws ApiError 400. */
export function readLogOptions(query: string, now: number) {
  const params = new URLSearchParams(query);
  const number = (name: string, least: number): number | undefined => {
    const text = params.get(name);
    if (text === null || text === '') return undefined;
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < least)
      throw badRequest(`${name} must be a whole number from ${least} on`);
    return value;
  };
  const flag = (name: string): boolean => /^(1|t|T|true|TRUE|True)$/.test(params.get(name) ?? '');
  const sinceSeconds = number('sinceSeconds', 1);
  const sinceTime = params.get('sinceTime');
  const at = sinceTime === null || sinceTime === '' ? undefined : Date.parse(sinceTime);
  if (at !== undefined && Number.isNaN(at)) throw badRequest('sinceTime must be a time in RFC 3339');
  return {
    follow: flag('follow'),
    previous: flag('previous'),
    timestamps: flag('timestamps'),
    /** Undefined = all. */
    tailLines: number('tailLines', 0),
    limitBytes: number('limitBytes', 1),
    /** Lines before it are left out, ms since the epoch. */
    since: sinceSeconds === undefined ? at : now - sinceSeconds * 1000,
  };
}

type LogOptions = ReturnType<typeof readLogOptions>;

interface LogSource {
  readonly pod: string;
  readonly container: string;
  /** Directory of the VM; undefined before there is one. */
  readonly directory: string | undefined;
  readonly kept: KeptLogs | undefined;
  /** True once nothing more will be written. */
  readonly ended: () => boolean;
}

/** Answers with the log as text. Throws ApiError 400 when there is none to read. */
export async function logResponse(
  source: LogSource,
  options: LogOptions,
  { clock }: { readonly clock: Clock },
): Promise<ApiResponse> {
  const { pod, container, directory, kept } = source;
  const files = hasLog(container) ? FILES[container]! : [];
  const of = `container ${JSON.stringify(container)} in pod ${JSON.stringify(pod)}`;
  // A launcher Pod is never started twice: there is no earlier run of a container.
  if (options.previous) throw badRequest(`previous terminated ${of} not found`);
  if (files.length === 0) throw badRequest(`${of} is not available: it writes no log here`);
  if (!kept && directory === undefined) throw badRequest(`${of} is waiting to start: ContainerCreating`);
  const headers = { 'content-type': 'text/plain' };
  const parts: Uint8Array[] = [];
  let at = clock.now();
  let offset = 0;
  if (kept) parts.push(kept[container] ?? new Uint8Array(0));
  else
    for (const name of files) {
      const read = await readTail(join(directory!, name), MAX_READ);
      parts.push(read.bytes);
      if (read.size > 0) at = read.changed;
      offset = read.size;
    }
  const budget = { left: options.limitBytes ?? Number.POSITIVE_INFINITY };
  const first = take(shape(Buffer.concat(parts), options, at), budget);
  if (!options.follow || kept || budget.left === 0) return { status: 200, headers, body: first };
  const file = join(directory!, files.at(-1)!);
  return {
    status: 200,
    headers,
    body: (sink) => {
      if (first.length > 0) sink.write(first);
      void follow(sink, { file, offset, options, budget, ended: source.ended, clock }).finally(() => sink.end());
    },
  };
}

interface Budget {
  left: number;
}

function take(bytes: Uint8Array, budget: Budget): Uint8Array {
  const taken = bytes.length > budget.left ? bytes.subarray(0, budget.left) : bytes;
  budget.left -= taken.length;
  return taken;
}

async function follow(
  sink: ByteSink,
  state: {
    readonly file: string;
    offset: number;
    readonly options: LogOptions;
    readonly budget: Budget;
    readonly ended: () => boolean;
    readonly clock: Clock;
  },
): Promise<void> {
  const { file, options, budget, ended, clock } = state;
  for (;;) {
    // Asked before the read, so that what was written last is still read.
    const last = ended();
    const { size, changed } = await sizeOf(file);
    // QEMU's file is cut in place when it is long.
    if (size < state.offset) state.offset = 0;
    if (size > state.offset) {
      const bytes = await readRange(file, state.offset, Math.min(size - state.offset, MAX_READ));
      state.offset += bytes.length;
      sink.write(take(shape(bytes, { ...options, tailLines: undefined }, changed), budget));
    }
    if (last || budget.left === 0 || sink.signal.aborted || sink.buffered > MAX_BEHIND) return;
    await clock.sleep(FOLLOW_MS, sink.signal).catch(() => {});
    if (sink.signal.aborted) return;
  }
}

/** QEMU writes one with `-msg timestamp=on`. */
const STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/;

function shape(bytes: Uint8Array, { tailLines, timestamps, since }: LogOptions, changed: number): Uint8Array {
  if (tailLines === undefined && !timestamps && since === undefined) return bytes;
  // Bytes are kept as they are: a serial line says what it likes.
  let lines = Buffer.from(bytes).toString('latin1').split('\n');
  const open = lines.at(-1) !== '';
  if (!open) lines.pop();
  if (since !== undefined) lines = lines.filter((line) => timeOf(line, changed) >= since);
  if (tailLines !== undefined) lines = tailLines === 0 ? [] : lines.slice(-tailLines);
  if (timestamps) {
    lines = lines.map((line) => (STAMP.test(line) ? line : `${new Date(changed).toISOString()} ${line}`));
  }
  const end = lines.length > 0 && !open ? '\n' : '';
  return Buffer.from(lines.join('\n') + end, 'latin1');
}

function timeOf(line: string, changed: number): number {
  const stamp = STAMP.exec(line)?.[0];
  const own = stamp === undefined ? Number.NaN : Date.parse(stamp);
  return Number.isNaN(own) ? changed : own;
}

async function sizeOf(file: string): Promise<{ size: number; changed: number }> {
  try {
    const { size, mtimeMs } = await stat(file);
    return { size, changed: mtimeMs };
  } catch {
    return { size: 0, changed: 0 };
  }
}

/** The last bytes of a file, none where there is no file; how large it is, and when it was changed, ms since the epoch. */
export async function readTail(file: string, limit: number) {
  const { size, changed } = await sizeOf(file);
  if (size === 0) return { bytes: new Uint8Array(0), size, changed };
  const from = Math.max(0, size - limit);
  return { bytes: await readRange(file, from, size - from), size, changed };
}

async function readRange(file: string, from: number, length: number): Promise<Uint8Array> {
  try {
    const handle = await open(file);
    try {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(length), 0, length, from);
      return buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch {
    return new Uint8Array(0);
  }
}
