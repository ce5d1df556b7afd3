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
import { boundedLine } from './bounded-line.ts';
import { answerDhcp } from './dhcp-answer.ts';
import { FILTER_FILES, type FilterConfig, type FilteredCard } from './filter-files.ts';
import { createFrameStream, withLength } from './frame-stream.ts';
import { packetRule } from './packet-rule.ts';
import { keepSwitchLine } from './switch/switch-line.ts';
import { createUdpPeers } from './udp-peers.ts';

const connected = (path: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = createConnection({ path });
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
    // Whichever goes first: QEMU has ended, or somebody starts another filter.
    socket.once('close', () => process.exit(0));
  });

async function filterCard(
  { netdev, network, udp }: FilteredCard,
  { hello, dhcp: options }: Pick<FilterConfig, 'hello' | 'dhcp'>,
): Promise<void> {
  const rule = packetRule(network);
  const peers = createUdpPeers(() => systemClock.monotonic());
  const [taken, given] = await Promise.all([
    connected(FILTER_FILES.taken(netdev)),
    connected(FILTER_FILES.given(netdev)),
  ]);
  if (udp) {
    const seen = await connected(FILTER_FILES.seen(netdev));
    const stream = createFrameStream((frame): undefined => {
      const peer = rule.udpPeer(frame);
      if (peer) peers.saw(peer);
    });
    seen.on('data', (bytes) => void stream.take(bytes as Buffer));
  }
  const world = boundedLine(given);
  const guest = hello && boundedLine(await connected(FILTER_FILES.brought(netdev)));
  const cluster = guest && keepSwitchLine(hello, guest);
  const stream = createFrameStream((frame) => {
    const answer = options && hello && answerDhcp(frame, { network, hello, options });
    if (answer) {
      guest?.write(withLength(answer));
      return undefined;
    }
    if (cluster?.carries(frame)) return cluster;
    return rule.mayPass(frame, peers.answers) && (cluster?.mayLeave(frame) ?? true) ? world : undefined;
  });
  taken.on('data', (bytes) => {
    for (const { to, bytes: piece } of stream.take(bytes as Buffer)) to.write(piece);
  });
}

const config = JSON.parse(readFileSync(FILTER_FILES.config, 'utf8')) as FilterConfig;
const { cards, logs = [] } = config;
await Promise.all(cards.map((card, index) => filterCard(card, index === 0 ? config : {})));
const life = { clock: systemClock, signal: new AbortController().signal };
for (const name of logs) keepLogShort(join(process.cwd(), name), life);
// The directory goes with the VM: nothing of ours holds it.
process.chdir('/');
