/** The line of a guest's filter to the switch of its node: kept as long as the filter lives, which may be longer than a switch. */
import { createConnection, type Socket } from 'node:net';
import { systemClock } from '@coracle/runtime/clock/clock';
import { boundedLine } from '../bounded-line.ts';
import { createFrameStream, noteFrame, noteOf } from '../frame-stream.ts';
import { ipv4Of, numberOf, portsOf, UDP } from '../ipv4-frame.ts';
import type { Line } from './guest-port.ts';
import { clusterName, DNS_PORT, questionOf, reverseAddress } from './name-server.ts';
import { isContinued, type PacketRuleSet, ruleSet } from './packet-policy.ts';
import { GUESTS_SOCKET } from './switch-files.ts';
import type { AddressChange, EgressChange, GuestHello } from './switch-state.ts';

const RETRY_MS = 500;
/** A filter that has just begun does not know yet where its guest may go; a switch that stays away does not cut it off. */
const WAIT_MS = 5000;
const BROADCAST = 0xffffffff;

export interface SwitchLine extends Line {
  /** True for a frame of the guest that is the switch's to carry: to a Pod or a Service, or a question for a name of the cluster. */
  carries(frame: Uint8Array): boolean;
  /** False for a frame to the world that NetworkPolicies keep the guest from sending. */
  mayLeave(frame: Uint8Array): boolean;
}

/** Connects, and again whenever the switch is away; what it brings goes to `guest`. To be called in the directory of the VM. */
export function keepSwitchLine(hello: GuestHello, guest: Line): SwitchLine {
  const directory = process.cwd();
  const life = new AbortController();
  const resolver = numberOf(hello.dns);
  const { resolvers } = hello;
  const carried = new Set<number>();
  let line: Line | undefined;

  const gateway = numberOf(hello.gateway);
  let egress: PacketRuleSet | undefined;
  /** The switch has said something: what it did not forbid is allowed. */
  let isKnown = false;
  const begun = systemClock.monotonic();

  const hear = (note: AddressChange | EgressChange): void => {
    isKnown = true;
    if (note.type === 'egress') egress = note.rules && ruleSet(note.rules);
    else hearAddresses(note);
  };
  const hearAddresses = ({ whole, add, remove }: AddressChange): void => {
    if (whole) carried.clear();
    for (const address of add) carried.add(numberOf(address));
    for (const address of remove) carried.delete(numberOf(address));
  };

  const serve = (socket: Socket): void => {
    const stream = createFrameStream((frame) => {
      const note = noteOf(frame);
      if (note === undefined) return guest;
      hear(note as AddressChange | EgressChange);
      return undefined;
    });
    socket.on('data', (bytes: Buffer) => {
      try {
        for (const { to, bytes: piece } of stream.take(bytes)) to.write(piece);
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    line = boundedLine(socket);
    socket.write(noteFrame(hello));
  };

  const connect = (): void => {
    // A path from here is short enough for a socket, and the directory is held by nobody but for this moment.
    process.chdir(directory);
    const socket = createConnection({ path: GUESTS_SOCKET });
    process.chdir('/');
    socket.on('error', () => {});
    socket.on('connect', () => serve(socket));
    socket.on('close', () => {
      line = undefined;
      void systemClock.sleep(RETRY_MS, life.signal).then(() => {
        try {
          connect();
        } catch {
          // The directory is gone, and with it the guest: this process ends with QEMU.
        }
      });
    });
  };
  connect();
  process.chdir(directory);

  return {
    carries(frame) {
      const packet = ipv4Of(frame);
      if (!packet) return false;
      if (packet.destination !== resolver) return carried.has(packet.destination);
      if (packet.protocol !== UDP || packet.isPart || portsOf(frame, packet)?.destination !== DNS_PORT) return false;
      const question = questionOf(frame.subarray(packet.payload + 8, packet.end));
      if (question === undefined) return false;
      // All of them, where others than the host are to be asked.
      if (resolvers) return resolvers.cluster || !resolvers.host || resolvers.servers.length > 0;
      const backwards = reverseAddress(question.name);
      return backwards === undefined ? clusterName(question.name) !== undefined : carried.has(numberOf(backwards));
    },
    mayLeave(frame) {
      const packet = ipv4Of(frame);
      if (packet?.destination === resolver && resolvers?.host === false) return false;
      if (!packet || (isKnown && !egress)) return true;
      const { destination, protocol } = packet;
      // The link itself: addresses by DHCP, names, answers to what came by a forwarded port.
      if (destination === gateway || destination === resolver || destination === BROADCAST) return true;
      if (!egress) return systemClock.monotonic() - begun > WAIT_MS;
      return isContinued(frame, packet) || egress.allows(destination, protocol, portsOf(frame, packet)?.destination);
    },
    write(bytes) {
      line?.write(bytes);
    },
  };
}
