/**
 * A program of its own, one for each node: its switch (`cluster-switch.ts`) with its sockets. Like the guests it outlives
 * the agent, and goes on with what that said last; it ends when no guest and no agent has spoken to it for a while. Its
 * working directory is `network` of the agent's data directory.
 */
import { rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { systemClock } from '@coracle/runtime/clock/clock';
import { boundedLine } from '../bounded-line.ts';
import { createFirstFrame, noteOf } from '../frame-stream.ts';
import { readLines, writeLine } from '../json-lines.ts';
import { createCardLines } from './card-lines.ts';
import { ClusterSwitch } from './cluster-switch.ts';
import { askServers, hostServers, resolveExternal } from './external-resolver.ts';
import type { LineEnd } from './guest-port.ts';
import type { QuestionAsker } from './name-answer.ts';
import { dialHere, PeerLinks } from './peer-links.ts';
import { connectProgram } from './program-port.ts';
import { createServiceListeners } from './service-listeners.ts';
import { type AgentMessage, SWITCH_FILES, type SwitchMessage } from './switch-files.ts';
import {
  type GuestHello,
  type NetworkCard,
  type NetworkChange,
  type NetworkListener,
  type NetworkPeer,
  type NetworkProgram,
  TABLES,
} from './switch-state.ts';
import { takeTable } from './take-table.ts';

/** With neither guests nor agent. */
const ALONE_MS = 10_000;
const MAX_GUESTS = 4096;
/** Until what was written last has left. */
const LAST_WORDS_MS = 50;

const life = new AbortController();
const clock = systemClock;
/** Asked anew each time which servers the host has: one on the road has another tomorrow. */
const ask: QuestionAsker = (question, { host, servers }) =>
  askServers(question, [...(host ? hostServers() : []), ...servers]);
const network = new ClusterSwitch({ now: () => clock.monotonic(), resolve: resolveExternal, ask });
// Its output is cut where it grows: `keep-switch.ts`.
const report = (message: string): void => void process.stdout.write(`${message}\n`);
const links = new PeerLinks({ network, clock, signal: life.signal, report });
/** Where the agent is to be reached, if it is there. */
let agent: Socket | undefined;
const listeners = createServiceListeners({
  clock,
  signal: life.signal,
  dial: (target) => (target.at ? dialHere(target.at) : links.dial(target)),
  onProblem: ({ service, host, port }, code) => {
    if (agent) writeLine(agent, { type: 'port-problem', service, host, port, code } satisfies SwitchMessage);
  },
});
const connections = new Set<Socket>();
let cancelEnd: (() => void) | undefined;

function lookWhetherAlone(): void {
  cancelEnd?.();
  cancelEnd = connections.size > 0 ? undefined : clock.schedule(ALONE_MS, () => process.exit(0));
}

function keep(socket: Socket): void {
  connections.add(socket);
  lookWhetherAlone();
  socket.on('error', () => {});
  socket.on('close', () => {
    connections.delete(socket);
    lookWhetherAlone();
  });
}

/** The first frame of a filter says whose it is. */
function serveGuest(socket: Socket): void {
  keep(socket);
  let end: LineEnd | undefined;
  const first = createFirstFrame();
  socket.on('data', (bytes: Buffer) => {
    try {
      if (end) {
        end.take(bytes);
        return;
      }
      const come = first.take(bytes);
      if (!come) return;
      const note = noteOf(come.frame) as GuestHello | undefined;
      if (note?.type !== 'guest') throw new Error('a filter that does not say whose it is');
      end = network.connectGuest(note, boundedLine(socket));
      end.take(come.rest);
    } catch (error) {
      socket.destroy(error as Error);
    }
  });
  socket.on('close', () => end?.close());
}

const peersNow = new Map<string, NetworkPeer>();
const listenersNow = new Map<string, NetworkListener>();
const cardsNow = new Map<string, NetworkCard>();
const programsNow = new Map<string, NetworkProgram>();
/** What ends each. */
const programs = new Map<string, () => void>();
const cards = createCardLines({ segments: network.segments, clock, signal: life.signal, onSocket: keep });

function setPrograms(): void {
  const connect = () => dialHere({ path: SWITCH_FILES.exports });
  for (const [address, end] of programs) {
    if (programsNow.has(address)) continue;
    end();
    programs.delete(address);
  }
  for (const [address, program] of programsNow)
    if (!programs.has(address)) programs.set(address, connectProgram(network, program, { clock, connect }));
}

function takeChange(change: NetworkChange): void {
  network.change(change);
  const { node, whole = false, peers, listeners: ports, cards: ofCards, programs: ofPrograms } = change;
  const isLinked = takeTable(peersNow, TABLES.peers, { ...peers, whole });
  const isServed = takeTable(listenersNow, TABLES.listeners, { ...ports, whole });
  if (takeTable(cardsNow, TABLES.cards, { ...ofCards, whole })) cards.set([...cardsNow.values()]);
  if (takeTable(programsNow, TABLES.programs, { ...ofPrograms, whole })) setPrograms();
  const all = [...listenersNow.values()];
  if (isLinked || isServed) links.setState({ node, peers: [...peersNow.values()], listeners: all });
  if (isServed) listeners.set(all);
}

function serveAgent(socket: Socket): void {
  keep(socket);
  agent = socket;
  socket.on('close', () => {
    if (agent === socket) agent = undefined;
  });
  readLines(socket, (message) => {
    const said = message as AgentMessage;
    switch (said.type) {
      case 'change':
        takeChange(said.change);
        return;
      case 'identity': {
        const { host, certificate, key, ca } = said;
        links.identify({ pair: () => ({ certificate, key }), ca }, host).then(
          (port) => writeLine(socket, { type: 'listening', port } satisfies SwitchMessage),
          (error: Error) => report(`other nodes cannot reach this one: ${error.message}`),
        );
        return;
      }
      default:
        said satisfies never;
    }
  });
}

function listen(name: string, serve: (socket: Socket) => void): void {
  rmSync(name, { force: true });
  const server = createServer(serve);
  server.maxConnections = MAX_GUESTS;
  server.listen(name);
}

/** Guests hear of it that their connections to programs end here: whoever only waits for bytes would wait for ever. */
process.once('SIGTERM', () => {
  for (const end of programs.values()) end();
  clock.schedule(LAST_WORDS_MS, () => process.exit(0));
});

process.umask(0o177);
listen(SWITCH_FILES.guests, serveGuest);
listen(SWITCH_FILES.control, serveAgent);
lookWhetherAlone();
