/**
 * The aggregated API `subresources.kubevirt.io`: what virtctl talks to. A table of routes; every handler checks the
 * state of the object and either patches it for the controllers or hands the request to the node's agent.
 */

import { ApiError } from '../../../api/meta/status.ts';
import type { ApiRequest, ApiResponse } from '../../../base/http/seam.ts';
import { evacuateCancelVm, evacuateCancelVmi } from './evacuate-cancel.ts';
import { expandSpecOfVm, expandVmSpec } from './expand-spec.ts';
import { objectGraphOfVm, objectGraphOfVmi } from './object-graph.ts';
import { failure, json, text } from './responses.ts';
import type { Handler, SubresourceOptions, SubresourceUser } from './subresource-context.ts';
import { attestation, memoryDump, redefineCheckpoint, usbRedirection, vsock } from './unavailable-actions.ts';
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

export const SUBRESOURCE_GROUP = 'subresources.kubevirt.io';
export const SUBRESOURCE_VERSIONS = ['v1', 'v1alpha3'] as const;

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
export interface SubresourceRequestInfo {
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly name: string;
  /** Decoded path segments from the resource on. */
  readonly parts: readonly string[];
}

type Verdict = boolean | { readonly allowed: boolean; readonly reason?: string };
export type SubresourceAuthorizer = (
  user: SubresourceUser,
  attributes: SubresourceAttributes,
) => Verdict | Promise<Verdict>;

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
  readonly handler: Handler;
  /** How many segments may follow the path. */
  readonly rest?: readonly [min: number, max: number];
}

const vm = (method: Route['method'], path: string, handler: Handler, rest?: Route['rest']): Route => ({
  resource: 'virtualmachines',
  method,
  path,
  handler,
  ...(rest && { rest }),
});
const vmi = (method: Route['method'], path: string, handler: Handler, rest?: Route['rest']): Route => ({
  ...vm(method, path, handler, rest),
  resource: 'virtualmachineinstances',
});

const ROUTES: readonly Route[] = [
  { resource: 'expand-vm-spec', method: 'PUT', path: '', handler: expandVmSpec },
  vm('GET', 'expand-spec', expandSpecOfVm),
  vm('PUT', 'start', startVm),
  vm('PUT', 'stop', stopVm),
  vm('PUT', 'restart', restartVm),
  vm('PUT', 'migrate', migrateVm),
  vm('PUT', 'evacuate/cancel', evacuateCancelVm),
  vm('GET', 'portforward', portForwardVm, [1, 2]),
  vm('PUT', 'addvolume', addVolumeToVm),
  vm('PUT', 'removevolume', removeVolumeFromVm),
  vm('PUT', 'memorydump', memoryDump),
  vm('PUT', 'removememorydump', memoryDump),
  vm('GET', 'objectgraph', objectGraphOfVm),
  vmi('PUT', 'pause', pauseVmi),
  vmi('PUT', 'unpause', unpauseVmi),
  vmi('PUT', 'freeze', freezeVmi),
  vmi('PUT', 'unfreeze', unfreezeVmi),
  vmi('PUT', 'softreboot', softRebootVmi),
  vmi('PUT', 'reset', resetVmi),
  vmi('PUT', 'evacuate/cancel', evacuateCancelVmi),
  vmi('GET', 'console', consoleOfVmi),
  vmi('GET', 'vnc', vncOfVmi),
  vmi('GET', 'vnc/screenshot', screenshotOfVmi),
  vmi('GET', 'portforward', portForwardVmi, [1, 2]),
  vmi('GET', 'guestosinfo', guestOsInfo),
  vmi('GET', 'userlist', userList),
  vmi('GET', 'filesystemlist', filesystemList),
  vmi('PUT', 'addvolume', addVolumeToVmi),
  vmi('PUT', 'removevolume', removeVolumeFromVmi),
  vmi('GET', 'objectgraph', objectGraphOfVmi),
  vmi('GET', 'usbredir', usbRedirection),
  vmi('GET', 'vsock', vsock),
  vmi('GET', 'sev/fetchcertchain', attestation),
  vmi('GET', 'sev/querylaunchmeasurement', attestation),
  vmi('PUT', 'sev/setupsession', attestation),
  vmi('PUT', 'sev/injectlaunchsecret', attestation),
  vmi('PUT', 'backup', backupVmi),
  vmi('PUT', 'redefine-checkpoint', redefineCheckpoint),
];

const VERB: Readonly<Record<string, string>> = { GET: 'get', PUT: 'update' };

/** One entry of the API's resource list. */
export interface DiscoveryEntry {
  readonly name: string;
  readonly singularName: string;
  readonly namespaced: boolean;
  readonly kind: string;
  readonly verbs: readonly string[];
}

export interface SubresourceApi {
  readonly group: string;
  readonly versions: readonly string[];
  readonly discovery: readonly DiscoveryEntry[];
  /** Answers one authenticated request; never rejects. `authorize` takes the place of the one given at creation. */
  handle(
    request: ApiRequest,
    user: SubresourceUser,
    info: SubresourceRequestInfo,
    authorize?: SubresourceAuthorizer,
  ): Promise<ApiResponse>;
}

export function createSubresourceApi(options: CreateSubresourceApiOptions): SubresourceApi {
  return {
    group: SUBRESOURCE_GROUP,
    versions: SUBRESOURCE_VERSIONS,
    discovery: discoveryEntries(),
    async handle(request, user, info, authorize = options.authorize) {
      try {
        const open = info.namespace === '' ? openEndpoint(info, options) : undefined;
        if (open !== undefined) return open;
        const found = findRoute(request, info);
        if ('status' in found) return found;
        const verdict = await authorize(user, {
          type: 'resource',
          verb: VERB[request.method]!,
          group: SUBRESOURCE_GROUP,
          version: info.version,
          resource: info.resource,
          // The route's path and not the request's: port and protocol of a forward are no matter of permission.
          subresource: found.route.path,
          namespace: info.namespace,
          name: info.name,
        });
        const { allowed, reason = '' } = typeof verdict === 'boolean' ? { allowed: verdict } : verdict;
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
        if (!(error instanceof ApiError)) {
          options.log.error('subresource request failed', {
            path: request.path,
            error: error instanceof Error ? error.message : String(error),
          });
        }
        return failure(error);
      }
    },
  };
}

/** Endpoints that ask for no authorisation. */
function openEndpoint(
  { resource }: SubresourceRequestInfo,
  { version, build }: SubresourceOptions,
): ApiResponse | undefined {
  switch (resource) {
    case 'version':
      return serverVersion(version, build);
    case 'healthz':
      return healthy();
    case 'guestfs':
      return guestfs(version);
    default:
      return undefined;
  }
}

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

function discoveryEntries(): DiscoveryEntry[] {
  const entry = (name: string, namespaced: boolean, verb: string): DiscoveryEntry => ({
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
    ...['version', 'healthz', 'guestfs'].map((name) => entry(name, false, 'get')),
  ].sort((a, b) => (a.name < b.name ? -1 : 1));
}
