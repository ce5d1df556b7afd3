/**
 * The node API: what virt-api asks of the agent that runs a guest. `/v1/namespaces/{ns}/virtualmachineinstances/{name}/...`,
 * and what the API server asks of a kubelet (`pod-requests.ts`, `node-requests.ts`).
 * Answers are JSON Status objects; console and portforward are message sockets.
 */
import { createConnection } from 'node:net';
import {
  ApiError,
  badRequest,
  conflict,
  internalError,
  methodNotSupported,
  notFound,
} from '@coracle/apimachinery/meta/status';
import type { BackupRequest } from '@coracle/kubevirt/rules/backup/backup-request';
import type { ApiHandler, ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import type { Logger } from '@coracle/runtime/log/log';
import { familyText, type MetricFamily } from '@coracle/runtime/metrics/metric-family';
import type { VolumeReader } from '../../export/volume-content.ts';
import type { Fills } from '../../fill/fills.ts';
import type { AskGuestAgent } from '../../qmp/guest-agent.ts';
import { QmpError } from '../../qmp/qmp-connection.ts';
import type { Pool } from '../../storage/pool.ts';
import { type FrozenGuest, freezeGuest, thawGuest, unfreezeTimeout } from '../guest/freeze.ts';
import type { Guest } from '../guest/guest.ts';
import { askFilesystems, askUsers, queryAll } from '../guest/guest-agent-facts.ts';
import { guestCondition } from '../guest/run-state.ts';
import type { Launcher } from '../launcher/launcher.ts';
import { memoryRequest } from '../memory/memory-requests.ts';
import { type NodeRequestOptions, nodeRequest } from './node-requests.ts';
import { type PodRequestOptions, podRequest } from './pod-requests.ts';
import { poolRequest } from './pool-requests.ts';
import { tunnel } from './port-tunnel.ts';
import { openVnc, screenshot } from './vnc.ts';

export interface HandlerOptions extends PodRequestOptions {
  readonly find: (namespace: string, name: string) => Launcher | undefined;
  /** Where saved guests lie. */
  readonly memoryDirectory: string;
  /** What `/metrics` says, beside what the API server knows. */
  readonly metrics: () => Promise<readonly MetricFamily[]>;
  /** What it says of the node itself, where it is asked through the API server. */
  readonly node: Pick<NodeRequestOptions, 'nodeName' | 'dataDir' | 'pods'>;
  /** The volumes of the node; undefined before it has started. */
  readonly pool?: () => Pool | undefined;
  /** What fills them. */
  readonly fills?: () => Fills | undefined;
  /** What reads them. */
  readonly volumes?: () => VolumeReader | undefined;
  /** True for a call of the control plane itself: nobody else asks for volumes, whatever a cluster lets them do. */
  readonly isControlPlane?: (request: ApiRequest) => boolean;
  /** Who may call; asked before anything else. */
  readonly authorize: (request: ApiRequest) => boolean | Promise<boolean>;
  readonly log: Logger;
}

interface Call {
  readonly launcher: Launcher;
  readonly guest: Guest;
  readonly name: string;
  readonly request: ApiRequest;
}

const VMI = { group: 'kubevirt.io', resource: 'virtualmachineinstances' };
const PROTOCOL = 'plain.kubevirt.io';
const MAX_BACKUP_REQUEST = 64 * 1024;
const PATH = /^\/v1\/namespaces\/([^/]+)\/virtualmachineinstances\/([^/]+)\/(.+)$/;
const PORT = /^portforward\/(\d{1,5})(?:\/tcp)?$/;

/** Makes the handler. It never rejects. */
export function createNodeHandler(options: HandlerOptions): ApiHandler {
  return async (request) => {
    try {
      if (!(await options.authorize(request)))
        throw new ApiError({ code: 403, reason: 'Forbidden', message: 'the node API is for the API server only' });
      if (request.receive && (await request.receive('')) !== 'here') return NO_ROOM;
      return await route(options, request);
    } catch (error) {
      if (error instanceof ApiError) return statusResponse(error);
      const message = error instanceof Error ? error.message : String(error);
      options.log.warn('node request failed', { path: request.path, error: message });
      return statusResponse(internalError(message, error));
    }
  };
}

const NO_ROOM: ApiResponse = { status: 503, headers: { 'retry-after': '1' } };

async function route(options: HandlerOptions, request: ApiRequest): Promise<ApiResponse> {
  if (request.path === '/metrics' && request.method === 'GET')
    return { status: 200, headers: METRICS_HEADERS, body: new TextEncoder().encode(await metricsText(options)) };
  const { pool, fills, volumes } = options;
  const aboutPool = poolRequest(
    { pool: pool?.(), fills: fills?.(), volumes: volumes?.(), allowed: options.isControlPlane?.(request) === true },
    request,
  );
  if (aboutPool) return aboutPool;
  const { metrics, clock } = options;
  const aboutNode = nodeRequest({ ...options.node, metrics, clock }, request);
  if (aboutNode) return aboutNode;
  const aboutPod = podRequest(options, request);
  if (aboutPod) return aboutPod;
  const aboutMemory = memoryRequest(options, request);
  if (aboutMemory) return aboutMemory;
  const match = PATH.exec(request.path);
  if (!match) throw notFound({ group: '', resource: 'paths' }, request.path.slice(0, 200));
  const [namespace = '', name = '', action = ''] = match.slice(1).map(decode);
  const launcher = options.find(namespace, name);
  const guest = launcher?.guest;
  if (!launcher || !guest) throw notFound(VMI, name);
  const call: Call = { launcher, guest, name, request };
  const port = PORT.exec(action)?.[1];
  if (port !== undefined) return portForward(call, Number(port), options);
  switch (action) {
    case 'console':
      return console(call);
    case 'vnc':
      return vnc(call, options);
    case 'vnc/screenshot':
      return picture(call, options);
  }
  const question = QUESTIONS.get(action);
  if (question) return report(call, question);
  const command = COMMANDS.get(action);
  if (command) return put(call, () => command(call, options));
  throw notFound({ group: VMI.group, resource: `${VMI.resource}/${action.slice(0, 40)}` }, name);
}

/** What the guest's agent is asked. */
const QUESTIONS: ReadonlyMap<string, (ask: AskGuestAgent) => Promise<object>> = new Map([
  ['guestosinfo', queryAll],
  ['userlist', async (ask: AskGuestAgent) => ({ metadata: {}, items: await askUsers(ask) })],
  ['filesystemlist', async (ask: AskGuestAgent) => ({ metadata: {}, items: await askFilesystems(ask) })],
]);

const COMMANDS: ReadonlyMap<string, (call: Call, options: HandlerOptions) => Promise<void>> = new Map([
  ['freeze', freeze],
  ['unfreeze', unfreeze],
  ['backup', backUp],
  ['pause', pause],
  ['unpause', unpause],
  ['softreboot', softReboot],
  ['reset', reset],
]);

const METRICS_HEADERS = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' };
const metricsText = async ({ metrics }: HandlerOptions): Promise<string> => (await metrics()).map(familyText).join('');

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw badRequest('the path is not properly encoded');
  }
}

/** Runs one command for a PUT. QEMU's refusals are conflicts, its silence is a failure of ours. */
async function put({ request, name, launcher }: Call, act: () => Promise<void>): Promise<ApiResponse> {
  if (request.method !== 'PUT') throw methodNotSupported(VMI, request.method);
  // Between its two ends nobody but the migration lets a guest run.
  if (launcher.record?.migration) throw conflict(VMI, name, 'VMI is migrating');
  if (launcher.record?.saving) throw conflict(VMI, name, 'the memory of the VMI is being saved');
  try {
    await act();
  } catch (error) {
    if (error instanceof QmpError && error.failure === 'refused') throw conflict(VMI, name, error.message);
    throw error;
  }
  return json(200, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 200 });
}

async function pause({ guest, name }: Call): Promise<void> {
  await guest.refresh();
  if (guest.state.runState === 'paused') throw conflict(VMI, name, 'VMI is already paused');
  if (guest.state.runState !== 'running') throw conflict(VMI, name, `VMI is not running (${guest.state.runState})`);
  await guest.qmp().execute('stop');
  await guest.refresh();
}

async function unpause({ guest, name }: Call): Promise<void> {
  await guest.refresh();
  const condition = guestCondition(guest.state.runState);
  if (condition !== 'stopped' && condition !== 'stalled') throw conflict(VMI, name, 'VMI is not paused');
  await guest.qmp().execute('cont');
  await guest.refresh();
}

/** The power button, and a fresh start when the guest has powered off. */
async function softReboot({ guest, launcher, name }: Call): Promise<void> {
  if (guest.state.runState !== 'running') throw conflict(VMI, name, 'VMI is not running');
  launcher.expectReboot();
  await guest.qmp().execute('system_powerdown');
}

async function reset({ guest, name }: Call): Promise<void> {
  // A paused machine is reset as well, and stays paused.
  if (guest.state.runState !== 'running' && guest.state.runState !== 'paused')
    throw conflict(VMI, name, 'VMI is not running');
  await guest.qmp().execute('system_reset');
}

function console({ guest, request }: Call): ApiResponse {
  const line = guest.console;
  if (!line) throw badRequest('No serial consoles are present.');
  const backlog = flag(request, 'backlog');
  return upgrade(request, (socket) => line.attach(socket, { backlog }));
}

async function vnc({ guest, launcher, request }: Call, options: HandlerOptions): Promise<ApiResponse> {
  checkUpgrade(request);
  const preserveSession = flag(request, 'preserveSession');
  const directory = options.directoryOf(launcher.record?.vmiUid ?? '');
  const { clock } = options;
  return upgrade(request, await openVnc(guest, { directory, clock, preserveSession, signal: request.signal }));
}

async function picture({ guest, launcher, request }: Call, options: HandlerOptions): Promise<ApiResponse> {
  if (request.method !== 'GET') throw methodNotSupported(VMI, request.method);
  const directory = options.directoryOf(launcher.record?.vmiUid ?? '');
  const body = await screenshot(guest, { directory, moveCursor: flag(request, 'moveCursor') });
  return { status: 200, headers: { 'content-type': 'image/png' }, body };
}

const flag = (request: ApiRequest, name: string): boolean => new URLSearchParams(request.query).get(name) === 'true';

/** Answers with what the guest agent says. */
async function report(call: Call, ask: (ask: AskGuestAgent) => Promise<object>): Promise<ApiResponse> {
  if (call.request.method !== 'GET') throw methodNotSupported(VMI, call.request.method);
  const { guest, name } = call;
  if (!guest.state.agentConnected) throw conflict(VMI, name, 'VMI does not have guest agent connected');
  return json(200, await guest.agent.converse(ask));
}

async function backUp({ launcher, guest, request }: Call): Promise<void> {
  if (request.body.byteLength > MAX_BACKUP_REQUEST) throw badRequest('the request for a backup is too large');
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder().decode(request.body));
  } catch {
    throw badRequest('the body is not JSON');
  }
  if (typeof body !== 'object' || body === null) throw badRequest('the body is not an object');
  await launcher.backUp(guest, body as BackupRequest);
}

async function freeze(call: Call, options: HandlerOptions): Promise<void> {
  const seconds = unfreezeTimeout(call.request.body);
  const thawAt = seconds === 0 ? undefined : options.clock.now() + seconds * 1000;
  await guestCommand(call, 'Freeze', () => freezeGuest(frozenGuest(call, options), thawAt));
}

async function unfreeze(call: Call, options: HandlerOptions): Promise<void> {
  await guestCommand(call, 'Unfreeze', () => thawGuest(frozenGuest(call, options)));
}

function frozenGuest(
  { launcher: { record }, guest: { agent }, name }: Call,
  { directoryOf }: HandlerOptions,
): FrozenGuest {
  if (!record?.process) throw notFound(VMI, name);
  return { agent, directory: directoryOf(record.vmiUid), process: record.process };
}

/** libvirt's words where no agent answers: clients look for them. */
const NO_AGENT =
  "LibvirtError(Code=86, Domain=10, Message='Guest agent is not responding: QEMU guest agent is not connected')";

/** Has the guest's agent do something. Throws ApiError 400 in the words of upstream's client of virt-launcher. */
async function guestCommand(call: Call, name: string, act: () => Promise<void>): Promise<void> {
  const failed = (why: string): ApiError => badRequest(`server error. command ${name} failed: ${JSON.stringify(why)}`);
  if (!call.guest.state.agentConnected) throw failed(NO_AGENT);
  try {
    await act();
  } catch (error) {
    if (error instanceof QmpError) throw failed(error.message);
    throw error;
  }
  call.guest.refreshAgent();
}

async function portForward(call: Call, port: number, options: HandlerOptions): Promise<ApiResponse> {
  const { guest, request } = call;
  if (port < 1 || port > 65535) throw badRequest(`port ${port} is out of range`);
  if (!guest.forwarder) throw badRequest('the guest has no network interface');
  if (!request.upgradable) throw badRequest('this needs a WebSocket');
  const target = await guest.forwarder.endpoint(port);
  return upgrade(request, (socket) => tunnel(socket, createConnection(target), options));
}

function upgrade(request: ApiRequest, accept: NonNullable<ApiResponse['upgrade']>['accept']): ApiResponse {
  checkUpgrade(request);
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
  return { status: 101, headers: {}, upgrade: { protocol: offered.includes(PROTOCOL) ? PROTOCOL : '', accept } };
}

function checkUpgrade(request: ApiRequest): void {
  if (request.method !== 'GET') throw methodNotSupported(VMI, request.method);
  if (!request.upgradable) throw badRequest('this needs a WebSocket');
}

const json = (status: number, value: unknown): ApiResponse => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: new TextEncoder().encode(`${JSON.stringify(value)}\n`),
});

const statusResponse = (error: ApiError): ApiResponse => json(error.code, error.status);
