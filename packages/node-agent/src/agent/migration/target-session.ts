/**
 * The connections of one migration as its target has them: one control channel, files that are copied before the guest
 * moves, and streams of memory and disks that go straight to QEMU's sockets.
 */

import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join as joinPath } from 'node:path';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createDeferred } from '@coracle/runtime/signal/deferred';
import { joinStreams } from '../../network/join-streams.ts';
import { VM_FILES } from '../../qemu/argv.ts';
import { connectUnix } from '../../qmp/unix-socket.ts';
import {
  type ChannelHeader,
  type ControlChannel,
  controlChannel,
  type SourceMessage,
  type TargetMessage,
} from './channel.ts';
import { DISK_SERVICE, MEMORY_SERVICE } from './migration-status.ts';
import { openPeerListener, type PeerListenerOptions } from './peer-listener.ts';

export type TargetControl = ControlChannel<SourceMessage, TargetMessage>;

interface TargetSessionOptions extends Omit<PeerListenerOptions, 'onChannel'> {
  readonly directory: string;
  readonly signal: AbortSignal;
}

const QEMU_MS = 5000;

/** Opens the ports. */
export async function openTargetSession(options: TargetSessionOptions) {
  const { directory, clock, log, signal } = options;
  const control = createDeferred<TargetControl>();
  let taken = false;
  let streams = false;
  let files: ReadonlyMap<string, number> = new Map();

  const receiveFile = async (header: Extract<ChannelHeader, { channel: 'file' }>, socket: Duplex): Promise<void> => {
    const most = files.get(header.name);
    if (most === undefined || !Number.isSafeInteger(header.size) || header.size < 0 || header.size > most)
      throw new Error(`file ${JSON.stringify(String(header.name).slice(0, 64))} is not expected`);
    const part = joinPath(directory, `${header.name}.part`);
    let received = 0;
    const counted = async function* (): AsyncGenerator<Buffer> {
      // The answer goes back over the same connection: reading to the end must not close it.
      for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        received += chunk.length;
        if (received > header.size) throw new Error(`${header.name} is longer than announced`);
        yield chunk;
        if (received === header.size) return;
      }
    };
    try {
      await pipeline(header.size === 0 ? [] : counted, createWriteStream(part, { mode: 0o600 }));
      if (received !== header.size) throw new Error(`${header.name} was cut off`);
      await rename(part, joinPath(directory, header.name));
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  };

  const onChannel = (header: ChannelHeader, socket: Duplex) => {
    const refuse = (error: Error): void => {
      log.warn('migration stream refused', { channel: header.channel, error: error.message });
      socket.destroy();
    };
    switch (header.channel) {
      case 'control':
        if (taken) return refuse(new Error('there is one control channel only'));
        taken = true;
        control.resolve(controlChannel(socket));
        return;
      case 'file':
        receiveFile(header, socket).then(() => socket.end('ok\n'), refuse);
        return;
      case 'memory':
      case 'disk': {
        if (!streams) return refuse(new Error('the target is not ready'));
        const name = header.channel === 'memory' ? VM_FILES.migrateIn : VM_FILES.nbdIn;
        connectUnix(joinPath(directory, name), { clock, timeoutMs: QEMU_MS, signal }).then(
          (qemu) => joinStreams(socket, qemu),
          refuse,
        );
        return;
      }
      default:
        refuse(new Error('unknown channel'));
    }
  };

  const listeners = await Promise.all([
    openPeerListener({ ...options, onChannel }),
    openPeerListener({ ...options, onChannel }),
  ]);
  const [memory, disks] = listeners;
  return {
    /** Service -> port. */
    ports: new Map([
      [MEMORY_SERVICE, memory.port],
      [DISK_SERVICE, disks.port],
    ]),
    /** The one control channel. */
    control: control.promise,
    /** Allows copies of these files (name -> most bytes), and no others. */
    allowFiles(allowed: ReadonlyMap<string, number>): void {
      files = allowed;
    },
    /** Streams may reach QEMU from now on. */
    allowStreams(): void {
      streams = true;
    },
    async close(): Promise<void> {
      await Promise.all(listeners.map((listener) => listener.close()));
    },
  };
}

export type TargetSession = Awaited<ReturnType<typeof openTargetSession>>;
