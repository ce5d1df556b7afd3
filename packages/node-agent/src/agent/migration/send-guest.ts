/**
 * The source of a live migration: tells the target what comes, sends disks and memory, stops, and either leaves the guest
 * to the target or lets it run on. What it may do when: `kubevirt/rules/migration/migration-steps.ts`. A failure of any kind
 * before the hand-over ends with the guest running here.
 */

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join as joinPath } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { TLSSocket } from 'node:tls';
import { FAIL_MIGRATION_HOOK } from '@coracle/kubevirt/rules/launcher/functional-test-hooks';
import { type MigrationLimits, migrationLimits } from '@coracle/kubevirt/rules/migration/migration-limits';
import { abortable } from '@coracle/runtime/signal/abortable';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { joinStreams } from '../../network/join-streams.ts';
import { connectPeer, usablePeer } from '../../network/peer.ts';
import { VM_FILES } from '../../qemu/argv.ts';
import type { Guest } from '../guest/guest.ts';
import { hasHook } from '../launcher/functional-test-hooks.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import type { VmRecord } from '../launcher/vm-record.ts';
import { type ChannelHeader, controlChannel, type TargetMessage, writeHeader } from './channel.ts';
import { copyName, copyPath, offeredDisks } from './disk-offer.ts';
import { enter, report, type SourceRecord } from './migration-record.ts';
import { DISK_SERVICE, isUnderWay, MEMORY_SERVICE, type Outgoing, sourceStarted } from './migration-status.ts';
import { followEvents } from './qemu-migration.ts';
import { listen, type SendOutcome, type SourceControl, settle, type Undo } from './settle-sender.ts';
import { streamGuest } from './stream-guest.ts';
import { listenUnix, type UnixListener } from './unix-listener.ts';

/** Why the migration was ended on request. */
class Aborted extends Error {}

/** Moves the guest. Resolves 'left' when it is the target's, 'stays' when it runs here. Rejects only with the end of the agent. */
export async function sendGuest(launcher: LauncherState, guest: Guest, outgoing: Outgoing): Promise<SendOutcome> {
  const { environment } = launcher;
  const limits = migrationLimits(outgoing.state.migrationConfiguration);
  const life = createLinkedController(environment.signal);
  const streams: UnixListener[] = [];
  const undo: Undo = { control: undefined, closeStreams: () => closeAll(streams) };
  let watching = true;
  void (async () => {
    while (watching) {
      const change = launcher.nextChange();
      const { vmi } = launcher;
      if (launcher.isDeleting()) life.abort(new Aborted('the VirtualMachineInstance is being deleted'));
      else if (vmi && vmi.status?.migrationState?.abortRequested === true && isUnderWay(vmi, outgoing.uid))
        life.abort(new Aborted('Live migration aborted by request'));
      else if (vmi && !isUnderWay(vmi, outgoing.uid)) life.abort(new Error('the migration is over'));
      await change;
    }
  })();
  try {
    launcher.event('Normal', 'Migrating', 'VirtualMachineInstance is migrating.');
    // Upstream's words: its tests look for them.
    if (await hasHook(launcher, FAIL_MIGRATION_HOOK))
      throw new Error('Failed migration to satisfy functional test condition');
    await transfer(launcher, { guest, outgoing, limits, undo, streams, signal: life.signal });
    watching = false;
    return await settle(launcher, guest, { outgoing, undo });
  } catch (error) {
    environment.signal.throwIfAborted();
    const reason = (life.signal.aborted ? life.signal.reason : error) as Error;
    launcher.log.warn('migration failed', { migration: outgoing.uid, error: reason.message });
    watching = false;
    const failure = { reason: reason.message, aborted: reason instanceof Aborted };
    return await settle(launcher, guest, { outgoing, undo, failure });
  } finally {
    watching = false;
    launcher.changed();
    life.release();
    await closeAll(streams);
    undo.control?.close();
  }
}

interface Transfer {
  readonly guest: Guest;
  readonly outgoing: Outgoing;
  readonly limits: MigrationLimits;
  readonly undo: Undo;
  /** Where QEMU sends to. */
  readonly streams: UnixListener[];
  readonly signal: AbortSignal;
}

const closeAll = async (streams: UnixListener[]): Promise<void> =>
  void (await Promise.all(streams.splice(0).map((stream) => stream.close())));

/** From the first word to a stopped guest of which everything has been sent, and the target has been notified. */
async function transfer(launcher: LauncherState, moving: Transfer): Promise<void> {
  const { environment } = launcher;
  const { guest, outgoing, undo, streams, signal } = moving;
  let { limits } = moving;
  const { clock } = environment;
  const record = launcher.record as VmRecord;
  const directory = joinPath(environment.vmsDirectory, record.vmiUid);
  const dial = async (service: number, header: ChannelHeader): Promise<TLSSocket> => {
    const port = outgoing.ports.get(service) ?? outgoing.ports.get(MEMORY_SERVICE) ?? 0;
    const target = { host: outgoing.host, port, nodeName: outgoing.targetNode };
    const socket = await connectPeer(target, { identity: usablePeer(environment.peer), clock, signal });
    writeHeader(socket, header);
    return socket;
  };
  await guest.refresh();
  if (guest.state.runState !== 'running' && guest.state.runState !== 'paused')
    throw new Error(`a guest in state ${guest.state.runState} cannot move`);
  // One that we paused for want of disk space runs where it comes to: there may be room.
  const wasRunning = guest.state.runState === 'running' || launcher.record?.diskPause !== undefined;

  const migration = outgoing.uid;
  const control: SourceControl = controlChannel(await dial(MEMORY_SERVICE, { channel: 'control', migration }));
  undo.control = control;
  const stop = createLinkedController(signal);
  void control.closed.then(() => stop.abort(new Error('the connection to the target node was lost')));
  const events = followEvents(guest, clock);
  const onNoPostCopy = (why: string): void => {
    const message = `post-copy is allowed and not possible, the migration goes on without it: ${why}`;
    launcher.event('Warning', 'PostCopyNotPossible', message);
  };
  const heard = async <T extends TargetMessage['type']>(type: T): Promise<Extract<TargetMessage, { type: T }>> => {
    const message = await abortable(control.next(), signal);
    if (message?.type === 'released') throw new Error(`the target gave up: ${message.reason}`);
    if (message?.type !== type) throw new Error('the connection to the target node was lost');
    return message as Extract<TargetMessage, { type: T }>;
  };
  try {
    const disks = await offeredDisks(guest, record, directory);
    control.send({
      type: 'hello',
      vmiUid: record.vmiUid,
      plan: record.plan,
      imageIds: record.imageIds,
      disks: disks.map(({ layered: _, ...offer }) => offer),
      wasRunning,
      autoConverge: limits.autoConverge,
      ...(limits.postCopy && { postCopy: true }),
      bootId: environment.bootId,
      address: record.address,
      addressesDirectory: environment.addressesDirectory,
    });
    const { sharesAddress } = await heard('accepted');
    const copies = disks
      .filter(({ move }) => move === 'copy')
      .map(({ index }) => [copyName(index), copyPath(directory, index)] as const);
    for (const [name, path] of [...copies, [VM_FILES.serialLog, joinPath(directory, VM_FILES.serialLog)] as const])
      await copyFile({ name, path, dial, migration }, signal);
    control.send({ type: 'start' });
    const { postCopyObstacle } = await heard('ready');
    if (limits.postCopy && postCopyObstacle !== undefined) {
      onNoPostCopy(`node ${outgoing.targetNode}: ${postCopyObstacle}`);
      limits = { ...limits, postCopy: false };
    }

    // On disk before QEMU gets any command: from here on there is something to undo.
    const peerNode = outgoing.targetNode;
    await enter(launcher, { role: 'source', phase: 'sending', uid: migration, peerNode, wasRunning, sharesAddress });
    const now = clock.now();
    await report(launcher, (vmi) => sourceStarted(vmi, migration, now));
    for (const [name, service, channel] of [
      [VM_FILES.migrateOut, MEMORY_SERVICE, 'memory'],
      [VM_FILES.nbdOut, DISK_SERVICE, 'disk'],
    ] as const)
      streams.push(
        await listenUnix(directory, name, (qemu) => {
          dial(service, { channel, migration }).then(
            (far) => joinStreams(qemu, far),
            (error: Error) => {
              launcher.log.warn('migration stream not connected', { channel, error: error.message });
              qemu.destroy();
            },
          );
        }),
      );
    // The target may give up at any time from here on.
    void listen(control, {
      released: (reason) => {
        undo.released = reason;
        stop.abort(new Error(`the target gave up: ${reason}`));
      },
      handedOver: () => {
        undo.handedOver = true;
      },
    });
    const targetGaveUp = (): boolean => undo.released !== undefined;
    const streaming = { ...moving, limits, signal: stop.signal, disks, events, onNoPostCopy, targetGaveUp };
    const { stoppedAt, postCopy } = await streamGuest(launcher, streaming);
    // Before the target hears of it: from here on the guest runs here only after the API, or the target, has been asked.
    await enter(launcher, { ...(launcher.record?.migration as SourceRecord), phase: 'sent' });
    control.send({ type: 'sent', stoppedAt, ...(postCopy && { postCopy }) });
  } finally {
    // The streams stay: QEMU has given everything away when it says so, and the last of it may still be on its way.
    events.close();
    stop.release();
  }
}

async function copyFile(
  file: {
    readonly name: string;
    readonly path: string;
    readonly migration: string;
    readonly dial: (service: number, header: ChannelHeader) => Promise<TLSSocket>;
  },
  signal: AbortSignal,
): Promise<void> {
  const found = await stat(file.path).catch(() => undefined);
  if (!found) return;
  const { migration, name } = file;
  const socket = await file.dial(DISK_SERVICE, { channel: 'file', migration, name, size: found.size });
  const answer = new Promise<string>((resolve) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString('latin1')).slice(0, 16);
      if (text.includes('\n')) resolve(text);
    });
    socket.on('close', () => resolve(text));
  });
  try {
    // Not longer than announced, even if the file grows meanwhile.
    if (found.size > 0)
      await pipeline(createReadStream(file.path, { end: found.size - 1 }), socket, { signal, end: false });
    if ((await abortable(answer, signal)) !== 'ok\n') throw new Error(`the target did not take ${file.name}`);
  } finally {
    socket.destroy();
  }
}
