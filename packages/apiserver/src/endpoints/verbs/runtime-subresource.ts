/**
 * Subresources that only a container runtime can serve: log, exec, attach, portforward, proxy. Logs, forwarded ports and
 * web pages are asked of the Pod's node by the kubelet's paths; what no node has is answered here at once.
 */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isFinal } from '@coracle/apimachinery/meta/object-state';
import { badRequest, type FieldError, internalError, invalid } from '@coracle/apimachinery/meta/status';
import type { PodParts } from '@coracle/apimachinery/types/types';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { admitConnection } from '../connect-admission.ts';
import type { Exchange } from '../exchange.ts';
import { int64Of } from '../query.ts';
import { textResponse } from '../responses.ts';
import { logOverSocket } from '../stream-socket.ts';
import { authorizeCreate } from '../write-request.ts';
import { askNode, ownQuestion } from './ask-node.ts';
import { storedObject } from './get.ts';
import { forwardPorts } from './port-forward.ts';
import { proxyVerb } from './proxy.ts';

const CONNECTS = new Set(['exec', 'attach', 'portforward']);
const KINDS = new Set(['pods', 'services', 'nodes']);

/** The verb of such a subresource, undefined for any other. */
export function runtimeSubresourceVerb(
  resource: string,
  subresource: string,
): ((exchange: Exchange) => Promise<ApiResponse>) | undefined {
  if (subresource === 'proxy' && KINDS.has(resource)) return admitted(proxyVerb);
  if (resource !== 'pods') return undefined;
  if (subresource === 'log') return log;
  return CONNECTS.has(subresource) ? admitted(connect) : undefined;
}

/** Connections are asked about before anybody is reached. */
const admitted =
  (verb: (exchange: Exchange) => Promise<ApiResponse>) =>
  async (exchange: Exchange): Promise<ApiResponse> => {
    await admitConnection(exchange);
    return verb(exchange);
  };

/** Validated before anybody looks for the Pod (core/validation ValidatePodLogOptions). Throws ApiError 400, 422. */
function checkLogOptions({ info, query }: Exchange): void {
  const errors: FieldError[] = [];
  const number = (name: string): number | undefined => {
    const text = query.get(name);
    return text === null ? undefined : int64Of(text);
  };
  const least = (field: string, value: number | undefined, [bound, detail]: readonly [number, string]): void => {
    if (value !== undefined && value < bound) errors.push({ type: 'FieldValueInvalid', field, value, detail });
  };
  least('tailLines', number('tailLines'), [0, 'must be greater than or equal to 0']);
  least('limitBytes', number('limitBytes'), [1, 'must be greater than 0']);
  const since = number('sinceSeconds');
  if (since !== undefined && query.get('sinceTime')) {
    const detail = 'at most one of `sinceTime` or `sinceSeconds` may be specified';
    errors.push({ type: 'FieldValueForbidden', field: '[]', detail });
  } else least('sinceSeconds', since, [1, 'must be greater than 0']);
  if (errors.length > 0) throw invalid({ group: '', kind: 'PodLogOptions' }, info.name, errors);
}

async function log(exchange: Exchange): Promise<ApiResponse> {
  const { request, server } = exchange;
  const answer = await readLog(exchange);
  return request.upgradable ? logOverSocket(request, answer, server.clock) : answer;
}

/** GET `log`: empty before there is a node, else why there is nothing to read. */
async function readLog(exchange: Exchange): Promise<ApiResponse> {
  checkLogOptions(exchange);
  const pod = storedObject(exchange).object as Readonly<UnstructuredObject> & PodParts;
  const { namespace = '', name = '' } = pod.metadata;
  const ask = (container: string): Promise<ApiResponse | undefined> => {
    const path = ['containerLogs', namespace, name, container].map(encodeURIComponent).join('/');
    // Who watches over a WebSocket is our affair: the node is asked for bytes.
    const question = { ...ownQuestion(exchange, `/${path}`), upgradable: false, upgradeTo: undefined };
    return askNode(exchange, pod.spec!.nodeName!, question).then((answer) => answer && asText(answer));
  };
  const asked = exchange.query.get('container') ?? '';
  if (asked !== '' && pod.spec?.nodeName && !allContainers(pod).some((one) => one.name === asked)) {
    // A node may keep a log that no container of the Pod stands for: a guest's serial line.
    const extra = await ask(asked).catch(() => undefined);
    if (extra?.status === 200) return extra;
  }
  const container = containerOf(exchange, pod);
  if (!pod.spec?.nodeName) return textResponse(200, '');
  const answer = await ask(container);
  if (answer) return answer;
  throw badRequest(
    `container ${JSON.stringify(container)} in pod ${JSON.stringify(pod.metadata.name)} is waiting to start: ContainerCreating`,
  );
}

const JSON_TYPE = /^application\/json(;|$)/;

/**
 * What a guest wrote, or a node says, is no page of this server's origin, whatever it looks like and whatever the node
 * calls it: text, and nothing else.
 */
function asText({ headers, ...answer }: ApiResponse): ApiResponse {
  const { 'content-type': type = '' } = headers;
  const isStatus = answer.status >= 400 && JSON_TYPE.test(String(type));
  return {
    ...answer,
    headers: { 'content-type': isStatus ? 'application/json' : 'text/plain', 'x-content-type-options': 'nosniff' },
  };
}

const allContainers = ({ spec = {} }: PodParts): readonly { name: string }[] => [
  ...(spec.containers ?? []),
  ...(spec.initContainers ?? []),
  ...(spec.ephemeralContainers ?? []),
];

/** The container a request is about. Throws ApiError 400 when it is not clear, or not there. */
function containerOf(exchange: Exchange, pod: Readonly<UnstructuredObject> & PodParts): string {
  const { spec: { containers = [], initContainers = [] } = {}, metadata } = pod;
  const asked = exchange.query.get('container') ?? '';
  const all = allContainers(pod);
  if (asked !== '') {
    if (all.some(({ name }) => name === asked)) return asked;
    throw badRequest(`container ${asked} is not valid for pod ${metadata.name}`);
  }
  if (all.length === 1) return all[0]!.name;
  const problem = `a container name must be specified for pod ${metadata.name}`;
  if (all.length === 0) throw badRequest(problem);
  const names = (some: readonly { readonly name: string }[]): string => `[${some.map(({ name }) => name).join(' ')}]`;
  const inits = initContainers.length === 0 ? '' : ` or one of the init containers: ${names(initContainers)}`;
  throw badRequest(`${problem}, choose one of: ${names(containers)}${inits}`);
}

/** exec, attach and portforward need `create` whatever the HTTP method is. */
async function connect(exchange: Exchange): Promise<ApiResponse> {
  const { info, server } = exchange;
  if (info.verb !== 'create') await authorizeCreate(exchange);
  const pod = storedObject(exchange).object as Readonly<UnstructuredObject> & PodParts;
  const phase = pod.status?.phase ?? '';
  if (info.subresource !== 'portforward') {
    if (isFinal(phase)) {
      throw badRequest(`cannot exec into a container in a completed pod; current phase is ${phase}`);
    }
    containerOf(exchange, pod);
  }
  if (!pod.spec?.nodeName) throw badRequest(`pod ${pod.metadata.name} does not have a host assigned`);
  if (info.subresource === 'portforward' && server.connectNode) {
    if (phase !== 'Running') {
      throw badRequest(`unable to forward port because pod is not running. Current status=${phase}`);
    }
    const path = ['portForward', pod.metadata.namespace ?? '', pod.metadata.name ?? ''].map(encodeURIComponent);
    return forwardPorts(exchange, pod.spec.nodeName, `/${path.join('/')}`);
  }
  throw internalError(`error dialing backend: node ${JSON.stringify(pod.spec.nodeName)} runs no containers`);
}
