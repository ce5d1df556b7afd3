/**
 * A program of its own, one for each guest: lets the packets of the guest pass that may (`packet-rule.ts`), and keeps the
 * log of its console short. Like QEMU it outlives the agent; it ends with QEMU. Its working directory is that of the VM.
 * Without it the guest sends nothing.
 */
import { readFileSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '@coracle/runtime/clock/clock';
import { keepLogShort } from '../disk/cut-log.ts';
import { FILTER_FILES, type FilterConfig, type FilteredCard } from './filter-files.ts';
import { createFrameStream } from './frame-stream.ts';
import { packetRule } from './packet-rule.ts';
import { createUdpPeers } from './udp-peers.ts';

/** Packets that wait for QEMU: beyond this they are dropped, as on any busy line. */
const MAX_WAITING = 1024 * 1024;

const connected = (path: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = createConnection({ path });
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
    // Whichever goes first: QEMU has ended, or somebody starts another filter.
    socket.once('close', () => process.exit(0));
  });

async function filterCard({ netdev, network, udp }: FilteredCard): Promise<void> {
  const rule = packetRule(network);
  const peers = createUdpPeers(() => systemClock.monotonic());
  const [taken, given] = await Promise.all([
    connected(FILTER_FILES.taken(netdev)),
    connected(FILTER_FILES.given(netdev)),
  ]);
  if (udp) {
    const seen = await connected(FILTER_FILES.seen(netdev));
    const stream = createFrameStream((frame) => {
      const peer = rule.udpPeer(frame);
      if (peer) peers.saw(peer);
      return false;
    });
    seen.on('data', (bytes) => void stream.take(bytes as Buffer));
  }
  const stream = createFrameStream((frame) => rule.mayPass(frame, peers.answers));
  taken.on('data', (bytes) => {
    for (const piece of stream.take(bytes as Buffer)) if (given.writableLength <= MAX_WAITING) given.write(piece);
  });
}

const { cards, logs = [] } = JSON.parse(readFileSync(FILTER_FILES.config, 'utf8')) as FilterConfig;
await Promise.all(cards.map(filterCard));
const life = { clock: systemClock, signal: new AbortController().signal };
for (const name of logs) keepLogShort(join(process.cwd(), name), life);
// The directory goes with the VM: nothing of ours holds it.
process.chdir('/');
