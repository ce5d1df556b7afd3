/** One probe of a guest, once. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { GuestProbe, ReadonlyVmi } from '@coracle/kubevirt/kinds/kubevirt';
import { podAddressOf } from '@coracle/kubevirt/rules/launcher/pod-address';
import type { ProbeOutcome } from '@coracle/kubevirt/rules/probe/probe-count';
import type { Clock } from '@coracle/runtime/clock/clock';
import { QmpError } from '../../qmp/qmp-connection.ts';
import type { Guest } from '../guest/guest.ts';
import { askFrozen } from '../guest/guest-agent-facts.ts';
import { runInGuest } from './guest-command.ts';
import { probeHttp } from './http-probe.ts';
import { probeTcp } from './tcp-probe.ts';

export interface AskGuestOptions {
  readonly guest: Pick<Guest, 'agent' | 'forwarder' | 'state'>;
  readonly vmi: ReadonlyVmi;
  /** Of the VM on its host. */
  readonly address: string;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Asks. Rejects with the signal alone. */
export async function askGuest(probe: DeepReadonly<GuestProbe>, options: AskGuestOptions): Promise<ProbeOutcome> {
  try {
    if (probe.httpGet || probe.tcpSocket) return await askPort(probe, options);
    return await askAgent(probe, options);
  } catch (error) {
    options.signal.throwIfAborted();
    return { type: 'errored', message: error instanceof Error ? error.message : String(error) };
  }
}

async function askPort(
  { httpGet, tcpSocket }: DeepReadonly<GuestProbe>,
  options: AskGuestOptions,
): Promise<ProbeOutcome> {
  const { forwarder } = options.guest;
  if (!forwarder) return { type: 'errored', message: 'the guest has no network interface' };
  const wanted = (httpGet ?? tcpSocket)?.port;
  const port = portNumber(options.vmi, wanted);
  if (port === undefined)
    return { type: 'errored', message: `invalid port ${JSON.stringify(wanted)}: no port has this name` };
  const name = `${podAddressOf(options.address)}:${port}`;
  return httpGet
    ? probeHttp(httpGet, { ...options, name, target: await forwarder.endpoint(port) })
    : probeTcp(forwarder, port, { ...options, name });
}

/** A number, or the name of a port of the guest's interfaces; undefined where there is none such. */
function portNumber({ spec }: ReadonlyVmi, wanted: string | number | undefined): number | undefined {
  if (typeof wanted === 'number') return wanted;
  const ports = (spec.domain.devices.interfaces ?? []).flatMap((nic) => nic.ports ?? []);
  const named = ports.find(({ name }) => name !== undefined && name === wanted)?.port;
  return named ?? (/^\d{1,5}$/.test(wanted ?? '') ? Number(wanted) : undefined);
}

/** Set to `true` while the agent of a guest is away on purpose: pings of it count as answered. */
const PAUSE_PINGS_ANNOTATION = 'kubevirt.io/pause-guest-agent-probes';

async function askAgent({ exec }: DeepReadonly<GuestProbe>, options: AskGuestOptions): Promise<ProbeOutcome> {
  const { guest, timeoutMs, vmi } = options;
  if (!exec && vmi.metadata.annotations?.[PAUSE_PINGS_ANNOTATION] === 'true') return { type: 'success' };
  const failure = (output: string): ProbeOutcome => ({ type: 'failure', output });
  if (!guest.state.agentConnected) return failure('QEMU guest agent is not connected');
  try {
    if (!exec) {
      await guest.agent.converse((ask) => ask('guest-ping', undefined, { timeoutMs }));
      return { type: 'success' };
    }
    const { exitCode, output } = await runInGuest(guest.agent, exec.command ?? [], options);
    if (exitCode === undefined) return failure(`command timed out after ${timeoutMs / 1000}s`);
    return exitCode === 0 ? { type: 'success' } : failure(output.trim() || `command exited with ${exitCode}`);
  } catch (error) {
    if (!(error instanceof QmpError)) throw error;
    // A frozen guest runs no commands, which says nothing of its health.
    if (error.failure === 'refused' && (await guest.agent.converse(askFrozen)) === 'frozen')
      return { type: 'errored', message: 'the file systems of the guest are frozen' };
    return failure(error.message);
  }
}
