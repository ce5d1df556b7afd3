/**
 * The kubelet's paths that this node answers for launcher Pods: `/containerLogs/{ns}/{pod}/{container}` and
 * `/portForward/{ns}/{pod}`; and one of our own, `/podProxy/{ns}/{pod}/{scheme}/{port}`. There are no processes of the user
 * in a launcher Pod, so there is no exec and no attach.
 */
import { badRequest, methodNotSupported, notFound } from '@coracle/apimachinery/meta/status';
import type { Clock } from '@coracle/runtime/clock/clock';
import { type ApiRequest, type ApiResponse, type MessageSocket, NO_BYTES } from '@coracle/runtime/http/seam';
import type { Forwarder } from '../../network/forwarder.ts';
import { NO_EPHEMERAL_CONTAINERS } from '../launcher/ephemeral-containers.ts';
import type { Launcher } from '../launcher/launcher.ts';
import { CHANNEL_PROTOCOL, forwardChannels, portsOf } from './channel-port-forward.ts';
import { hasLog, logResponse, readLogOptions } from './pod-logs.ts';
import { type ForwardTarget, forwardPorts } from './pod-port-forward.ts';
import { proxyToGuest } from './pod-proxy.ts';

const PODS = { group: '', resource: 'pods' };
const PATH = /^\/(containerLogs|portForward)\/([^/]+)\/([^/]+)(?:\/([^/]+))?$/;
const PROXY_PATH = /^\/podProxy\/([^/]+)\/([^/]+)\/([^/]+)\/([^/]+)$/;
/** SPDY/3.1 frames in binary messages. Not kubectl's name for it: that is no token of RFC 6455, and our client refuses it. */
const PORT_FORWARD_PROTOCOL = 'spdy-3.1.portforward.k8s.io';
/** SPDY without a WebSocket. */
const SPDY = 'SPDY/3.1';
const STREAM_VERSION = 'x-stream-protocol-version';
const STREAM_PROTOCOL = 'portforward.k8s.io';

export interface PodRequestOptions {
  readonly findPod: (namespace: string, name: string) => Launcher | undefined;
  /** Where the ports of an exporter Pod lead; undefined when no Pod of that name is one here. */
  readonly findExporter?: (namespace: string, name: string) => ForwardTarget['endpoint'] | undefined;
  /** Directory of a VM. */
  readonly directoryOf: (vmiUid: string) => string;
  readonly clock: Clock;
}

/** Answers a request about a Pod; undefined when the path is none of these. Throws ApiError. */
export function podRequest(options: PodRequestOptions, request: ApiRequest): Promise<ApiResponse> | undefined {
  const proxied = PROXY_PATH.exec(request.path);
  if (proxied) {
    const [, namespace = '', name = '', scheme = '', port = ''] = proxied.map(decodeURIComponent);
    return proxy(options, request, { namespace, name, scheme, port });
  }
  const match = PATH.exec(request.path);
  if (!match) return undefined;
  const [, kind, namespace = '', name = '', container] = match.map((part) => part && decodeURIComponent(part));
  return answer(options, request, { kind: kind!, namespace: namespace!, name: name!, container });
}

async function answer(
  options: PodRequestOptions,
  request: ApiRequest,
  at: { kind: string; namespace: string; name: string; container: string | undefined },
): Promise<ApiResponse> {
  const launcher = options.findPod(at.namespace, at.name);
  const exporter = launcher ? undefined : options.findExporter?.(at.namespace, at.name);
  if (!launcher && !exporter) throw notFound(PODS, at.name);
  const isSpdy = at.kind === 'portForward' && request.upgradeTo !== undefined;
  if (request.method !== 'GET' && !(isSpdy && request.method === 'POST'))
    throw methodNotSupported(PODS, request.method);
  const { clock } = options;
  if (at.kind === 'containerLogs') {
    if (at.container === undefined) throw badRequest('a container has to be named');
    // What stands for a disk, or leads to exports, says nothing.
    if (!launcher || (!hasLog(at.container) && launcher.containers.includes(at.container))) return plain('');
    const { record } = launcher;
    if (launcher.hasEphemeral(at.container)) return plain(`${NO_EPHEMERAL_CONTAINERS}\n`);
    const source = {
      pod: at.name,
      container: at.container,
      directory: record?.process && options.directoryOf(record.vmiUid),
      kept: launcher.keptLogs,
      ended: () => launcher.record?.result !== undefined,
    };
    return logResponse(source, readLogOptions(request.query, clock.now()), { clock });
  }
  const forwarder = launcher && forwarderOf(launcher, at.name);
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim());
  const target = { pod: at.name, endpoint: exporter ?? ((port: number) => forwarder!.endpoint(port)) };
  if (request.upgradable && offered.includes(CHANNEL_PROTOCOL)) {
    const ports = portsOf(request.query);
    const accept = (socket: MessageSocket): void => forwardChannels(socket, ports, { target, clock });
    return { status: 101, headers: {}, upgrade: { protocol: CHANNEL_PROTOCOL, accept } };
  }
  const accept = (socket: MessageSocket): void => forwardPorts(socket, target, { clock });
  if (isSpdy) return overBytes(request, accept);
  if (!request.upgradable || !offered.includes(PORT_FORWARD_PROTOCOL))
    throw badRequest(`this needs a WebSocket with the protocol ${PORT_FORWARD_PROTOCOL}`);
  return { status: 101, headers: {}, upgrade: { protocol: PORT_FORWARD_PROTOCOL, accept } };
}

const plain = (text: string): ApiResponse => ({
  status: 200,
  headers: { 'content-type': 'text/plain' },
  body: text === '' ? NO_BYTES : new TextEncoder().encode(text),
});

/** The handshake of httpstream, as an external API server speaks it with a kubelet. */
function overBytes({ upgradeTo = '', headers }: ApiRequest, accept: (socket: MessageSocket) => void): ApiResponse {
  if (upgradeTo.toLowerCase() !== SPDY.toLowerCase())
    throw badRequest(`unable to upgrade: "${upgradeTo}" is not ${SPDY}`);
  const offered = (headers[STREAM_VERSION] ?? '').split(',').map((protocol) => protocol.trim());
  if (!offered.includes(STREAM_PROTOCOL))
    throw badRequest(`unable to upgrade: ${STREAM_VERSION} lacks ${STREAM_PROTOCOL}`);
  const agreed = { [STREAM_VERSION]: STREAM_PROTOCOL };
  return { status: 101, headers: agreed, upgrade: { protocol: SPDY, raw: true, accept } };
}

async function proxy(
  options: PodRequestOptions,
  request: ApiRequest,
  at: { namespace: string; name: string; scheme: string; port: string },
): Promise<ApiResponse> {
  const launcher = options.findPod(at.namespace, at.name);
  if (!launcher) throw notFound(PODS, at.name);
  const forwarder = forwarderOf(launcher, at.name);
  return proxyToGuest(request, { ...at, endpoint: (port) => forwarder.endpoint(port) });
}

/** What leads to the ports of a running guest. Throws ApiError 400 when there is none. */
function forwarderOf(launcher: Launcher, name: string): Forwarder {
  if (!launcher.guest || launcher.record?.result) throw badRequest(`pod ${name} is not running`);
  if (!launcher.guest.forwarder) throw badRequest('the guest has no network interface');
  return launcher.guest.forwarder;
}
