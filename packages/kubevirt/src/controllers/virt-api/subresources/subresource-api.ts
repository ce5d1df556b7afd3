/**
 * The aggregated API `subresources.kubevirt.io`: what virtctl talks to. A table of routes; every handler checks the
 * state of the object and either patches it for the controllers or hands the request to the node's agent.
 */

import { ApiError } from '@coracle/apimachinery/meta/status';
import type { ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import { evacuateCancelVm, evacuateCancelVmi } from './evacuate-cancel.ts';
import { expandSpecOfVm, expandVmSpec } from './expand-spec.ts';
import { memoryDump, removeMemoryDump } from './memory-dump.ts';
import { objectGraphOfVm, objectGraphOfVmi } from './object-graph.ts';
import { failure, json, messageOf, text } from './responses.ts';
import type { Handler, SubresourceOptions, SubresourceUser } from './subresource-context.ts';
import { attestation, redefineCheckpoint, usbRedirection, vsock } from './unavailable-actions.ts';
import { migrateVm, restartVm, startVm, stopVm } from './vm-power.ts';
import {
  backupVmi,
  consoleOfVmi,
  filesystemList,
  freezeVmi,
  guestfs,
  guestOsInfo,
  healthy,
  pauseVmi,
  portForwardVm,
  portForwardVmi,
  resetVmi,
  screenshotOfVmi,
  serverVersion,
  softRebootVmi,
  unfreezeVmi,
  unpauseVmi,
  userList,
  vncOfVmi,
} from './vmi-actions.ts';

import { addVolumeToVm, addVolumeToVmi, removeVolumeFromVm, removeVolumeFromVmi } from './volume-changes.ts';

const GROUP = 'subresources.kubevirt.io';
const VERSIONS = ['v1', 'v1alpha3'] as const;

/** What is asked of the authoriser: the attributes of a SubjectAccessReview. */
export interface SubresourceAttributes {
  readonly type: 'resource';
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

/** The part of a parsed request that is read here. */
interface SubresourceRequestInfo {
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly name: string;
  /** Decoded path segments from the resource on. */
  readonly parts: readonly string[];
}

type Decision = boolean | { readonly allowed: boolean; readonly reason?: string };
export type SubresourceAuthorizer = (
  user: SubresourceUser,
  attributes: SubresourceAttributes,
) => Decision | Promise<Decision>;

export interface CreateSubresourceApiOptions extends SubresourceOptions {
  /** Asked when `handle` is given no authoriser of its own. */
  readonly authorize: SubresourceAuthorizer;
}

interface Route {
  /** `expand-vm-spec` belongs to a namespace and not to an object: it has no name and no path. */
  readonly resource: 'virtualmachines' | 'virtualmachineinstances' | 'expand-vm-spec';
  /** Path behind the name: `start`, `evacuate/cancel`. */
  readonly path: string;
  readonly method: 'GET' | 'PUT';
  /** Upstream's operationId, without the version. */
  readonly operation: string;
  readonly handler: Handler;
  /** How many segments may follow the path. */
  readonly rest?: readonly [min: number, max: number];
}

/** A route below the name of an object, by its method and path. */
const routeOf =
  (resource: Route['resource']) =>
  (line: `${Route['method']} ${string}`, operation: string, handler: Handler, rest?: Route['rest']): Route => {
    const [method, path] = line.split(' ') as [Route['method'], string];
    return { resource, method, path, operation, handler, ...(rest && { rest }) };
  };
const vm = routeOf('virtualmachines');
const vmi = routeOf('virtualmachineinstances');
/** A port, and its protocol where it is said. */
const PORT: Route['rest'] = [1, 2];

const ROUTES: readonly Route[] = [
  { resource: 'expand-vm-spec', method: 'PUT', path: '', operation: 'ExpandSpec', handler: expandVmSpec },
  vm('GET expand-spec', 'vm-ExpandSpec', expandSpecOfVm),
  vm('PUT start', 'Start', startVm),
  vm('PUT stop', 'Stop', stopVm),
  vm('PUT restart', 'Restart', restartVm),
  vm('PUT migrate', 'Migrate', migrateVm),
  vm('PUT evacuate/cancel', 'vm-evacuatecancel', evacuateCancelVm),
  vm('GET portforward', 'vm-PortForward', portForwardVm, PORT),
  vm('PUT addvolume', 'vm-addvolume', addVolumeToVm),
  vm('PUT removevolume', 'vm-removevolume', removeVolumeFromVm),
  vm('PUT memorydump', 'MemoryDump', memoryDump),
  vm('PUT removememorydump', 'RemoveMemoryDump', removeMemoryDump),
  vm('GET objectgraph', 'vm-objectgraph', objectGraphOfVm),
  vmi('PUT pause', 'Pause', pauseVmi),
  vmi('PUT unpause', 'Unpause', unpauseVmi),
  vmi('PUT freeze', 'Freeze', freezeVmi),
  vmi('PUT unfreeze', 'Unfreeze', unfreezeVmi),
  vmi('PUT softreboot', 'SoftReboot', softRebootVmi),
  vmi('PUT reset', 'Reset', resetVmi),
  vmi('PUT evacuate/cancel', 'vmi-evacuatecancel', evacuateCancelVmi),
  vmi('GET console', 'Console', consoleOfVmi),
  vmi('GET vnc', 'VNC', vncOfVmi),
  vmi('GET vnc/screenshot', 'VNCScreenshot', screenshotOfVmi),
  vmi('GET portforward', 'vmi-PortForward', portForwardVmi, PORT),
  vmi('GET guestosinfo', 'Guestosinfo', guestOsInfo),
  vmi('GET userlist', 'Userlist', userList),
  vmi('GET filesystemlist', 'Filesystemlist', filesystemList),
  vmi('PUT addvolume', 'vmi-addvolume', addVolumeToVmi),
  vmi('PUT removevolume', 'vmi-removevolume', removeVolumeFromVmi),
  vmi('GET objectgraph', 'vmi-objectgraph', objectGraphOfVmi),
  vmi('GET usbredir', 'usbredir', usbRedirection),
  vmi('GET vsock', 'VSOCK', vsock),
  vmi('GET sev/fetchcertchain', 'SEVFetchCertChain', attestation),
  vmi('GET sev/querylaunchmeasurement', 'SEVQueryLaunchMeasurement', attestation),
  vmi('PUT sev/setupsession', 'SEVSetupSession', attestation),
  vmi('PUT sev/injectlaunchsecret', 'SEVInjectLaunchSecret', attestation),
  vmi('PUT backup', 'Backup', backupVmi),
  vmi('PUT redefine-checkpoint', 'RedefineCheckpoint', redefineCheckpoint),
];

const VERB: Readonly<Record<string, string>> = { GET: 'get', PUT: 'update' };

/** One operation, with what varies in its path in braces. */
interface Operation {
  readonly method: 'get' | 'put';
  /** Below the version of the API. */
  readonly path: string;
  readonly id: string;
}

/** The API by its group, the entries of its resource list, and its operations for `/openapi/v2`. */
export function createSubresourceApi(options: CreateSubresourceApiOptions) {
  return {
    group: GROUP,
    versions: VERSIONS,
    discovery: discoveryEntries(),
    operations: operations(),
    /** Answers one authenticated request; never rejects. `authorize` takes the place of the one given at creation. */
    async handle(
      request: ApiRequest,
      user: SubresourceUser,
      info: SubresourceRequestInfo,
      authorize = options.authorize,
    ): Promise<ApiResponse> {
      try {
        const open = info.namespace === '' ? OPEN.find(({ name }) => name === info.resource) : undefined;
        if (open !== undefined) return open.answer(options);
        const found = findRoute(request, info);
        if ('status' in found) return found;
        const decision = await authorize(user, {
          type: 'resource',
          verb: VERB[request.method]!,
          group: GROUP,
          version: info.version,
          resource: info.resource,
          // The route's path and not the request's: port and protocol of a forward are no matter of permission.
          subresource: found.route.path,
          namespace: info.namespace,
          name: info.name,
        });
        const { allowed, reason = '' } = typeof decision === 'boolean' ? { allowed: decision } : decision;
        // Behind an API server that has asked before: then such a refusal is virt-api's own, 401 and plain text.
        if (!allowed) return text(401, reason);
        const key = { namespace: info.namespace, name: info.name };
        const begun = options.clock.monotonic();
        const response = await found.route.handler({ key, request, rest: found.rest, options, user });
        options.log.info('subresource request', {
          user: user.username,
          resource: info.resource,
          subresource: found.route.path,
          ns: key.namespace,
          name: key.name,
          status: response.status,
          ms: Math.round(options.clock.monotonic() - begun),
        });
        return response;
      } catch (error) {
        if (!(error instanceof ApiError))
          options.log.error('subresource request failed', { path: request.path, error: messageOf(error) });
        return failure(error);
      }
    },
  };
}

/** An endpoint without a namespace, which asks for no authorisation. */
interface OpenEndpoint {
  readonly name: string;
  /** Upstream's operationId. */
  readonly id: string;
  readonly answer: (options: SubresourceOptions) => ApiResponse;
}

const OPEN: readonly OpenEndpoint[] = [
  { name: 'version', id: 'Version', answer: ({ version, build }) => serverVersion(version, build) },
  { name: 'healthz', id: 'CheckHealth', answer: healthy },
  { name: 'guestfs', id: 'Guestfs', answer: ({ version }) => guestfs(version) },
];

const segmentsOf = (path: string): string[] => (path === '' ? [] : path.split('/'));

function findRoute(
  request: ApiRequest,
  info: SubresourceRequestInfo,
): { route: Route; rest: readonly string[] } | ApiResponse {
  const behind = info.parts.slice(2);
  const candidates = ROUTES.filter(({ resource, path, rest: [min, max] = [0, 0] }) => {
    const segments = segmentsOf(path);
    const extra = behind.length - segments.length;
    return (
      resource === info.resource &&
      segments.every((segment, i) => segment === behind[i]) &&
      extra >= min &&
      extra <= max
    );
  });
  const route = candidates.find(({ method }) => method === request.method);
  if (route !== undefined) return { route, rest: behind.slice(segmentsOf(route.path).length) };
  return candidates.length > 0
    ? text(405, '405: Method Not Allowed')
    : json(404, {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'the server could not find the requested resource',
        reason: 'NotFound',
        details: {},
        code: 404,
      });
}

function discoveryEntries() {
  const entry = (name: string, namespaced: boolean, verb: string) => ({
    name,
    singularName: '',
    namespaced,
    kind: '',
    verbs: [verb],
  });
  return [
    ...ROUTES.map(({ resource, path, method }) =>
      entry(path === '' ? resource : `${resource}/${path}`, true, VERB[method]!),
    ),
    ...OPEN.map(({ name }) => entry(name, false, 'get')),
  ].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function operations(): Operation[] {
  const of = ({ resource, path, method, operation, rest }: Route): Operation[] => {
    const place = `namespaces/{namespace}/${resource}${path === '' ? '' : `/{name}/${path}`}`;
    const one = { method: method === 'GET' ? 'get' : 'put', path: place, id: operation } as const;
    if (!rest) return [one];
    return [
      { ...one, path: `${place}/{port}` },
      { ...one, path: `${place}/{port}/{protocol}`, id: `${operation}WithProtocol` },
    ];
  };
  return [...ROUTES.flatMap(of), ...OPEN.map(({ name, id }): Operation => ({ method: 'get', path: name, id }))];
}
