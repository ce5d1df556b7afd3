/** Requests that the node's agent carries out: pause and its like, guest information, console and port forward. */

import { type ApiError, badRequest, internalError } from '@coracle/apimachinery/meta/status';
import { type VersionFacts, versionInfo } from '@coracle/apimachinery/meta/version-info';
import { wholeBody } from '@coracle/client/transport/response-body';
import { type ApiResponse, redirected } from '@coracle/runtime/http/seam';
import type { VirtualMachineInstance } from '../../../kinds/kubevirt.ts';
import type { ConnectionKind } from './connection-counts.ts';
import {
  empty,
  isDryRun,
  json,
  messageOf,
  readOptions,
  VM_NOT_RUNNING,
  VMI_NOT_RUNNING,
  vmConflict,
  vmiConflict,
  vmiForbidden,
} from './responses.ts';
import {
  type Call,
  fetchVmi,
  fetchVmiOfVm,
  findVm,
  type Handler,
  hasCondition,
  isRunning,
} from './subresource-context.ts';

/** Sub-protocol of all streams: bytes as they are, in binary messages. */
export const PLAIN = 'plain.kubevirt.io';

/** Throws ApiError when the action is not possible now. */
type Check = (vmi: VirtualMachineInstance) => void;

const nameOf = ({ metadata }: VirtualMachineInstance): string => metadata.name ?? '';

const runningOr =
  (message: string): Check =>
  (vmi) => {
    if (!isRunning(vmi)) throw vmiConflict(nameOf(vmi), message);
  };

const checkRunning = runningOr(VMI_NOT_RUNNING);
const checkVmRunning = runningOr(VM_NOT_RUNNING);

const checkPause: Check = (vmi) => {
  checkVmRunning(vmi);
  // A probe of the agent pauses with the guest; the others would see it fail and have it killed.
  if (vmi.spec.livenessProbe !== undefined && vmi.spec.livenessProbe.guestAgentPing === undefined)
    throw vmiForbidden(nameOf(vmi), 'Pausing VMIs with a non-GuestAgentPing LivenessProbe is not supported');
  if (hasCondition(vmi, 'Paused')) throw vmiConflict(nameOf(vmi), 'VMI is already paused');
};

const checkUnpause: Check = (vmi) => {
  checkRunning(vmi);
  if (!hasCondition(vmi, 'Paused')) throw vmiConflict(nameOf(vmi), 'VMI is not paused');
};

const checkSoftReboot: Check = (vmi) => {
  checkVmRunning(vmi);
  if (hasCondition(vmi, 'Paused', 'True')) throw vmiConflict(nameOf(vmi), 'VMI is paused');
  if (!hasCondition(vmi, 'AgentConnected') && vmi.spec.domain.features?.acpi?.enabled === false)
    throw vmiConflict(nameOf(vmi), 'VMI neither have the agent connected nor the ACPI feature enabled');
};

/** A refusal is an internal error: that is what clients know. */
const checkAgent: Check = (vmi) => {
  const refuse = (why: string): ApiError => internalError(vmiConflict(nameOf(vmi), why).message);
  if (!isRunning(vmi)) throw refuse(VMI_NOT_RUNNING);
  if (!hasCondition(vmi, 'AgentConnected')) throw refuse('VMI does not have guest agent connected');
};

const checkConsole: Check = (vmi) => {
  if (vmi.spec.domain.devices.autoattachSerialConsole === false) throw badRequest('No serial consoles are present.');
  if (vmi.status?.phase === 'Failed') throw vmiConflict(nameOf(vmi), 'VMI is in failed status');
  if (!isRunning(vmi)) throw badRequest(VMI_NOT_RUNNING);
};

const checkVnc: Check = (vmi) => {
  if (vmi.spec.domain.devices.autoattachGraphicsDevice === false) throw badRequest('No graphics devices are present.');
  if (!isRunning(vmi)) throw badRequest(VMI_NOT_RUNNING);
};

const checkPortForward: Check = (vmi) => {
  if (hasCondition(vmi, 'Paused')) throw vmiConflict(nameOf(vmi), 'VMI is paused');
  if (!isRunning(vmi)) throw badRequest(VMI_NOT_RUNNING);
};

/** A PUT that the agent carries out; answers 200 without a body. */
const action =
  (name: string, check: Check, options: { body?: boolean; before?: (call: Call) => Promise<void> } = {}): Handler =>
  async (call) => {
    await options.before?.(call);
    const vmi = await fetchVmi(call);
    check(vmi);
    const dryRun = options.body !== true && isDryRun(readOptions(call.request.body));
    if (dryRun) return empty(200);
    const answer = await askAgent(call, vmi, { method: 'PUT', path: name });
    if (answer.status >= 300) throw await agentFailure(call, answer);
    return empty(200);
  };

export const pauseVmi = action('pause', checkPause);
/** A snapshot holds the guest still: nobody may wake it meanwhile. An instance without a machine has no snapshots. */
async function refuseDuringSnapshot(call: Call): Promise<void> {
  const vm = await findVm(call);
  if (vm?.status?.snapshotInProgress !== undefined) throw vmConflict(call.key.name, 'VM snapshot is in progress');
}

export const unpauseVmi = action('unpause', checkUnpause, { before: refuseDuringSnapshot });
export const freezeVmi = action('freeze', checkVmRunning, { body: true });
export const unfreezeVmi = action('unfreeze', checkRunning, { body: true });
/** Begins a backup of the guest's volumes, or breaks it off: the controller of backups asks. */
export const backupVmi = action('backup', checkRunning, {
  body: true,
  before: async ({ options }) => {
    if (!options.config().isEnabled('IncrementalBackup'))
      throw badRequest("'IncrementalBackup' feature gate is not enabled");
  },
});
export const softRebootVmi = action('softreboot', checkSoftReboot);
export const resetVmi = action('reset', checkRunning);

/** A GET whose answer comes from the agent. */
const agentAnswer =
  (path: string, check: Check, contentType: string): Handler =>
  async (call) => {
    const vmi = await fetchVmi(call);
    check(vmi);
    const answer = await askAgent(call, vmi, { method: 'GET', path });
    if (answer.status !== 200) throw await agentFailure(call, answer);
    return { ...answer, headers: { 'content-type': contentType } };
  };

/** JSON of the agent. Any failure but a missing instance is a 500. */
const guestInformation = (path: string): Handler => agentAnswer(path, checkAgent, 'application/json');

export const guestOsInfo = guestInformation('guestosinfo');
export const userList = guestInformation('userlist');
export const filesystemList = guestInformation('filesystemlist');

/** A picture of the screen. */
export const screenshotOfVmi = agentAnswer('vnc/screenshot', checkVnc, 'image/png');

/** A byte stream between the client and the agent. */
const stream =
  (
    kind: ConnectionKind,
    check: Check,
    pathOf: (call: Call) => string,
    find: (call: Call) => Promise<VirtualMachineInstance>,
  ): Handler =>
  async (call) => {
    const vmi = await find(call);
    check(vmi);
    const path = pathOf(call);
    if (call.request.upgradable !== true) throw badRequest('this endpoint speaks WebSocket: send an upgrade request');
    const answer = await askAgent(call, vmi, { method: 'GET', path });
    if (answer.upgrade === undefined) throw await agentFailure(call, answer, 'dialing virt-handler: ');
    const offered = (call.request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
    const { upgrade } = answer;
    // The agent takes the client's socket itself: both ends speak the same messages, so nothing stands between them.
    const accept: typeof upgrade.accept = (socket) => {
      call.options.connections?.opened(kind, call.key, socket);
      upgrade.accept(socket);
    };
    return { status: 101, headers: {}, upgrade: { protocol: offered.includes(PLAIN) ? PLAIN : '', accept } };
  };

function portForwardPath({ rest }: Call): string {
  const [port = '', protocol = 'tcp'] = rest;
  if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65535) throw badRequest(`${port} is not a port number`);
  if (protocol !== 'tcp' && protocol !== 'udp') throw badRequest(`protocol ${protocol} is neither tcp nor udp`);
  return `portforward/${port}/${protocol}`;
}

export const consoleOfVmi = stream('console', checkConsole, () => 'console', fetchVmi);
export const vncOfVmi = stream('vnc', checkVnc, () => 'vnc', fetchVmi);
export const portForwardVmi = stream('portforward', checkPortForward, portForwardPath, fetchVmi);
export const portForwardVm = stream('portforward', checkPortForward, portForwardPath, fetchVmiOfVm);

/** The answer of the agent that has the instance. Throws ApiError 400 when none has it, 500 when it is out of reach. */
async function askAgent(
  { key, request, options }: Call,
  vmi: VirtualMachineInstance,
  ask: { readonly method: string; readonly path: string },
): Promise<ApiResponse> {
  const { phase, nodeName } = vmi.status ?? {};
  if ((phase !== 'Running' && phase !== 'Scheduled') || !nodeName) {
    throw badRequest(
      `Unable to connect to VirtualMachineInstance because phase is ${phase ?? ''} instead of Running or Scheduled`,
    );
  }
  // What the user proved to us is not for the agent to see, or to replay.
  const { authorization: _, cookie: __, ...headers } = request.headers;
  const path = `/v1/namespaces/${key.namespace}/virtualmachineinstances/${key.name}/${ask.path}`;
  const inner = redirected(request, { method: ask.method, path, headers });
  try {
    const handler = await options.nodeHandler(nodeName);
    return await handler(inner);
  } catch (error) {
    options.log.warn('node agent not reached', {
      node: nodeName,
      ns: key.namespace,
      name: key.name,
      error: messageOf(error),
    });
    throw internalError(`dialing virt-handler: ${messageOf(error)}`, error);
  }
}

const decoder = new TextDecoder();
/** Bytes of an agent's answer that are looked at. */
const MAX_AGENT_MESSAGE = 4096;

/** What an agent said of its failure: the message of a Status, or the text as it is. */
async function agentFailure({ request }: Call, answer: ApiResponse, what = ''): Promise<ApiError> {
  // Over the network the answer comes as a stream. One that breaks off leaves only its status.
  const bytes = await wholeBody(answer, request.signal).catch(() => new Uint8Array());
  const text = decoder.decode(bytes.subarray(0, MAX_AGENT_MESSAGE));
  try {
    const parsed = JSON.parse(text) as { message?: unknown };
    if (typeof parsed?.message === 'string')
      return internalError(what + parsed.message.replace(/^Internal error occurred: /, ''));
  } catch {
    // Not JSON: plain text then.
  }
  return internalError(what + (text.trim() || `the node agent answered ${answer.status}`));
}

/** Facts about this server (KubeVirt's version.Info); no authentication is asked for them. */
export function serverVersion(version: string, facts: VersionFacts = {}): ApiResponse {
  const { gitCommit, gitTreeState, buildDate, goVersion, compiler, platform } = versionInfo(facts);
  return json(200, { gitVersion: version, gitCommit, gitTreeState, buildDate, goVersion, compiler, platform });
}

export const healthy = (): ApiResponse => json(200, { apiserver: { connectivity: 'ok' } });

/** The image of guest file-system tools: there is none here, and an empty registry says so. */
export const guestfs = (version: string): ApiResponse =>
  json(200, { registry: '', tag: version, imagePrefix: '', gsImage: '' });
