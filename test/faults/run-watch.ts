/**
 * Looks at the QEMUs of a data directory from outside, by the process table and a monitor of its own, and keeps for each
 * the times at which its guest ran, by QEMU's own clock. Two of one instance may be there; they may never run both.
 */
import { connect, type Socket } from 'node:net';
import { type QemuProcess, qemusUnder } from './migration-failpoints.ts';

interface Span {
  /** ms since the epoch. */
  readonly from: number;
  to: number;
}

export interface Seen extends QemuProcess {
  readonly spans: Span[];
  readonly socket: Socket;
}

export interface RunWatch {
  /** Live QEMUs. */
  live(): readonly Seen[];
  /** The one of an instance whose guest runs, if any. */
  owner(uid: string): Seen | undefined;
  /** A QEMU was killed by us, at this time. */
  killed(pid: number, at: number): void;
  /** Longest time that a guest stood still between two spans, of one QEMU or of two; ms. */
  longestPause(): number;
  /** What was wrong, once. */
  violations(): readonly string[];
  stop(): void;
}

const LOOK_MS = 50;
/** A kill is noted just before it is done. */
const KILL_MS = 5;

export function watchRuns(dir: string): RunWatch {
  const seen = new Map<number, Seen>();
  const all: Seen[] = [];
  const reported = new Set<string>();
  const kills = new Map<number, number>();

  const follow = (found: QemuProcess): void => {
    // The path through /proc is short, and the right directory whatever happens to its name.
    const socket = connect(`/proc/${found.pid}/cwd/probe.sock`);
    const one: Seen = { ...found, spans: [], socket };
    let connected = false;
    const close = (at: number): void => {
      const last = one.spans.at(-1);
      if (last && last.to === Number.POSITIVE_INFINITY) last.to = at;
    };
    const run = (at: number): void => {
      if (one.spans.at(-1)?.to !== Number.POSITIVE_INFINITY) one.spans.push({ from: at, to: Number.POSITIVE_INFINITY });
    };
    let held = '';
    socket.on('data', (chunk: Buffer) => {
      const lines = (held + chunk.toString()).split('\n');
      held = lines.pop() ?? '';
      for (const line of lines) {
        const message = JSON.parse(line) as {
          QMP?: object;
          event?: string;
          timestamp?: { seconds: number; microseconds: number };
          return?: { running?: boolean };
        };
        const at = message.timestamp ? message.timestamp.seconds * 1000 + message.timestamp.microseconds / 1000 : 0;
        if (message.QMP) socket.write('{"execute":"qmp_capabilities"}\n{"execute":"query-status"}\n');
        else if (message.event === 'RESUME') run(at);
        else if (message.event === 'STOP') close(at);
        else if (message.return?.running === true) run(Date.now());
      }
    });
    socket.on('connect', () => {
      connected = true;
      seen.set(found.pid, one);
      all.push(one);
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      if (connected) close(kills.get(found.pid) ?? Date.now());
      // Not listening yet: tried again at the next look, while the process is there.
      seen.delete(found.pid);
      tried.delete(found.pid);
    });
  };
  const tried = new Set<number>();
  const timer = setInterval(() => {
    for (const found of qemusUnder(dir))
      if (!tried.has(found.pid)) {
        tried.add(found.pid);
        follow(found);
      }
    for (const [index, a] of all.entries())
      for (const b of all.slice(index + 1)) {
        if (a.uid !== b.uid || a.pid === b.pid) continue;
        for (const x of a.spans)
          for (const y of b.spans) {
            const together = Math.min(x.to, y.to) - Math.max(x.from, y.from);
            // Events of the two come over two sockets: one that has just begun may be the end of the other's still to come.
            const settled = Date.now() - Math.max(x.from, y.from) > 1000;
            if (together > KILL_MS && settled)
              reported.add(
                `two QEMUs of ${a.uid} ran at once: pid ${a.pid} on ${a.node} and pid ${b.pid} on ${b.node}`,
              );
          }
      }
  }, LOOK_MS);
  const running = (one: Seen): boolean => one.spans.at(-1)?.to === Number.POSITIVE_INFINITY;
  return {
    live: () => [...seen.values()],
    owner: (uid) => [...seen.values()].find((one) => one.uid === uid && running(one)),
    killed: (pid, at) => void kills.set(pid, at),
    longestPause() {
      let longest = 0;
      for (const uid of new Set(all.map((one) => one.uid))) {
        const spans = all.filter((one) => one.uid === uid).flatMap((one) => one.spans);
        spans.sort((a, b) => a.from - b.from);
        for (const [index, { from }] of spans.entries()) {
          const before = spans[index - 1];
          if (before && Number.isFinite(before.to)) longest = Math.max(longest, from - before.to);
        }
      }
      return Math.round(longest);
    },
    violations: () => [...reported],
    stop() {
      clearInterval(timer);
      for (const { socket } of seen.values()) socket.destroy();
    },
  };
}
