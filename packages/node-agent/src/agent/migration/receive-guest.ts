/** A guest comes from another node: its target, from the hand-over by the controller to a guest that is all here. */
import type { ReadonlyVmi } from '@coracle/kubevirt/kinds/kinds';
import { BLOCK_TARGET_HOOK } from '@coracle/kubevirt/rules/launcher/functional-test-hooks';
import { movedPlan } from '@coracle/kubevirt/rules/migration/plan-difference';
import { abortable } from '@coracle/runtime/signal/abortable';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { addressOf, claimAddress, releaseAddress } from '../../network/address-pool.ts';
import { usablePeer } from '../../network/peer.ts';
import { diskNode, VM_FILES } from '../../qemu/argv.ts';
import type { Guest } from '../guest/guest.ts';
import { attachVolumes } from '../guest/guest-volumes.ts';
import { hasHook } from '../launcher/functional-test-hooks.ts';
import { FIRST_RETRY_MS, type LauncherState } from '../launcher/launcher-state.ts';
import { type PreparedVm, spawnVm } from '../launcher/start-vm.ts';
import { endProcess } from '../launcher/stop-vm.ts';
import type { VmResult } from '../launcher/vm-result.ts';
import type { Hello, SourceMessage } from './channel.ts';
import { arrivedDisks, copiedFiles, offerProblem } from './disk-offer.ts';
import { report as reportOnce } from './migration-record.ts';
import { incomingMigration, isUnderWay, targetDetected, targetReady } from './migration-status.ts';
import { followEvents, isMigrationStatus, mirrorExport, setCapabilities, tryPostCopy } from './qemu-migration.ts';
import { failure, type TargetRecord, takeOver } from './take-over.ts';
import { openTargetSession, type TargetControl, type TargetSession } from './target-session.ts';

const LAST_WORDS_MS = 1000;
/** Lines: what went wrong, where, and that it went wrong. */
const LAST_WORDS = 3;

/** Waits for the guest of another node and takes it over. Undefined means that it runs here; it rejects only with the end of the agent. */
export async function receiveGuest(launcher: LauncherState, prepared: PreparedVm): Promise<VmResult | undefined> {
  const { environment } = launcher;
  const { addressesDirectory } = environment;
  const vmiUid = launcher.vmiUid;
  const held = await addressOf(addressesDirectory, vmiUid);
  const address = held ?? (await claimAddress(addressesDirectory, vmiUid));
  const giveBack = async (): Promise<void> => {
    if (held === undefined && !launcher.record)
      await releaseAddress(addressesDirectory, address, vmiUid).catch(() => {});
  };
  const startedAt = environment.clock.now();
  await launcher.untilDone('pod not reported', async () => {
    if (!(await launcher.report({ state: 'running', startedAt, address, imageIds: prepared.imageIds })))
      throw new Error('the write failed');
  });

  const uid = launcher.migrationJob ?? '';
  const podName = launcher.pod?.metadata.name ?? '';
  for (;;) {
    const change = launcher.nextChange();
    if (launcher.isDeleting()) {
      await giveBack();
      return failure('the migration was given up before the guest came');
    }
    const incoming = incomingMigration(launcher.vmi, { uid, podName, nodeName: environment.nodeName });
    if (incoming && !(await hasHook(launcher, BLOCK_TARGET_HOOK))) {
      const result = await receiveFrom(launcher, { prepared, uid, address, sourceNode: incoming.sourceNode });
      await giveBack();
      return result;
    }
    await Promise.race([change, launcher.untilAborted()]);
  }
}

interface Receiving {
  readonly prepared: PreparedVm;
  readonly uid: string;
  readonly sourceNode: string;
  readonly address: string;
}

async function receiveFrom(launcher: LauncherState, receiving: Receiving): Promise<VmResult | undefined> {
  const { environment } = launcher;
  const { uid, sourceNode, prepared } = receiving;
  const life = createLinkedController(environment.signal);
  let session: TargetSession | undefined;
  let control: TargetControl | undefined;
  let done = false;
  void (async () => {
    while (!done) {
      const change = launcher.nextChange();
      if (launcher.isDeleting()) life.abort(new Error('the target pod is being deleted'));
      else if (launcher.vmi && !isUnderWay(launcher.vmi, uid)) life.abort(new Error('the migration is over'));
      await change;
    }
  })();
  try {
    session = await openTargetSession({
      host: environment.hostIP,
      directory: prepared.directory,
      identity: usablePeer(environment.peer),
      sourceNode,
      migration: uid,
      clock: environment.clock,
      log: launcher.log,
      signal: life.signal,
    });
    const { ports } = session;
    await report(launcher, (vmi) => targetReady(vmi, uid, { address: environment.hostIP, ports }));
    control = await abortable(session.control, life.signal);
    void control.closed.then(() => life.abort(new Error('the connection to the source node was lost')));
    const { guest, stoppedAt } = await takeStream(launcher, { ...receiving, session, control, signal: life.signal });
    // From here on the source is stopped for good: whatever happens, the API decides.
    done = true;
    const { open, send } = control;
    const source = {
      stoppedAt,
      isOpen: () => control?.open ?? open,
      onHandedOver: () => send({ type: 'handed-over' }),
    };
    const result = await takeOver(launcher, guest, source);
    // Once the write was tried only the API can say that it did not happen.
    if (result && launcher.record?.migration?.phase === 'receiving')
      control.send({ type: 'released', reason: result.message });
    return result;
  } catch (error) {
    environment.signal.throwIfAborted();
    const reason = life.signal.aborted ? (life.signal.reason as Error).message : (error as Error).message;
    launcher.log.warn('migration given up', { migration: uid, error: reason });
    await launcher.untilDone('guest not ended', async () => {
      if (launcher.record) await endProcess(environment, launcher.record, launcher.guest);
    });
    control?.send({ type: 'released', reason });
    return failure(reason);
  } finally {
    done = true;
    launcher.changed();
    life.release();
    if (control)
      await Promise.race([control.closed, environment.clock.sleep(LAST_WORDS_MS, environment.signal).catch(() => {})]);
    await session?.close();
    control?.close();
  }
}

/** What QEMU printed last, without times and its own name: it ends after a stream that it cannot load, and says why only there. */
const lastWords = (output: string): string =>
  output
    .split('\n')
    .slice(-LAST_WORDS)
    .map((line) => line.replace(/^(\S+ )?qemu-system-\w+: /, ''))
    .join('; ');

/** From the first word of the source to a guest whose memory and disks are all here. Rejects for every reason not to go on. */
async function takeStream(
  launcher: LauncherState,
  options: Receiving & {
    readonly session: TargetSession;
    readonly control: TargetControl;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly guest: Guest; readonly stoppedAt: number | undefined }> {
  const { environment } = launcher;
  const { session, control, signal, uid, sourceNode, prepared } = options;
  const heard = async <T extends SourceMessage['type']>(type: T): Promise<Extract<SourceMessage, { type: T }>> => {
    const message = await abortable(control.next(), signal);
    if (message?.type === 'cancel') throw new Error(message.reason);
    if (message?.type !== type) throw new Error(`the source said ${JSON.stringify(message?.type)} and not ${type}`);
    return message as Extract<SourceMessage, { type: T }>;
  };

  const hello: Hello = await heard('hello');
  const problem =
    hello.vmiUid === launcher.vmiUid ? await offerProblem(hello, prepared) : 'the source has another instance';
  if (problem !== undefined) throw new Error(problem);
  const sharesAddress =
    hello.bootId === environment.bootId &&
    hello.addressesDirectory === environment.addressesDirectory &&
    hello.address === options.address;
  session.allowFiles(copiedFiles(hello, prepared));
  control.send({ type: 'accepted', sharesAddress });
  await heard('start');
  session.allowFiles(new Map());

  const { vmi, pod } = launcher;
  if (!vmi || !pod) throw new Error('the pod is gone');
  const plan = movedPlan(hello.plan, prepared.plan);
  const { wasRunning } = hello;
  const volumes = { ...prepared.volumes, disks: arrivedDisks(hello, prepared.volumes.disks) };
  const { record, guest } = await spawnVm(environment, {
    vmi,
    pod,
    prepared: { ...prepared, plan, volumes },
    address: options.address,
    migration: { role: 'target', phase: 'receiving', uid, peerNode: sourceNode, wasRunning, sharesAddress },
    onChange: () => launcher.changed(),
    onRecord: (written) => {
      launcher.record = written;
    },
    onGuest: (opened) => {
      launcher.guest = opened;
    },
  });
  launcher.record = record;
  launcher.guest = guest;
  await attachVolumes(launcher, guest);
  const events = followEvents(guest, environment.clock);
  try {
    const qmp = guest.qmp();
    const known = environment.facts.postCopyObstacle;
    const { obstacle = known } =
      hello.postCopy && known === undefined
        ? await tryPostCopy(qmp, hello)
        : await setCapabilities(qmp, { autoConverge: hello.autoConverge, postCopy: false });
    const mirrored = hello.disks.filter((disk) => disk.move === 'mirror' || disk.mirrorToo === true);
    if (mirrored.length > 0) {
      await qmp.execute('nbd-server-start', { addr: { type: 'unix', data: { path: VM_FILES.nbdIn } } });
      for (const { index } of mirrored)
        await qmp.execute('block-export-add', {
          type: 'nbd',
          id: mirrorExport(index),
          'node-name': diskNode(index),
          name: diskNode(index),
          writable: true,
        });
    }
    await qmp.execute('migrate-incoming', { uri: `unix:${VM_FILES.migrateIn}` });
    session.allowStreams();
    await report(launcher, (newest) => targetDetected(newest, uid));
    control.send({ type: 'ready', ...(obstacle !== undefined && { postCopyObstacle: obstacle }) });
    const watching = createLinkedController(signal);
    const end = events
      .wait('the stream', isMigrationStatus('completed', 'failed'), watching.signal)
      .then(async ({ data }) => {
        if (data['status'] !== 'failed') return;
        const why = lastWords(await guest.output());
        throw new Error(`QEMU of the target could not load the guest${why && `: ${why}`}`);
      });
    end.catch(() => {});
    let sent: Extract<SourceMessage, { type: 'sent' }>;
    try {
      const word = heard('sent');
      sent = await Promise.race([word, end.then(() => word)]);
      // In post-copy the end of the stream comes long after the guest is ours.
      if (!sent.postCopy) await end;
    } finally {
      watching.abort(new Error('the stream is not waited for any more'));
      watching.release();
    }
    const { stoppedAt, postCopy } = sent;
    if (postCopy) launcher.record = { ...record, migration: { ...(record.migration as TargetRecord), postCopy } };
    if (mirrored.length > 0) await qmp.execute('nbd-server-stop');
    return { guest, stoppedAt: hello.bootId === environment.bootId ? stoppedAt : undefined };
  } finally {
    events.close();
  }
}

/** Writes what the target has to say; it is tried once more where the API is slow, and no failure ends the migration. */
async function report(
  launcher: LauncherState,
  change: (vmi: ReadonlyVmi) => Readonly<Record<string, unknown>>,
): Promise<void> {
  const { clock, signal } = launcher.environment;
  for (let attempt = 0; ; attempt++) {
    try {
      return await reportOnce(launcher, change);
    } catch (error) {
      signal.throwIfAborted();
      if (attempt >= 3) throw error;
      await clock.sleep(FIRST_RETRY_MS, signal);
    }
  }
}
