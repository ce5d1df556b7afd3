/** An API group answered by somebody else in this process: KubeVirt's `subresources.kubevirt.io`. */
import type { ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import type { Authorizer, UserInfo } from '../auth/identity.ts';
import type { RequestInfo } from './request-info.ts';

/** One entry of an APIResourceList. */
export interface ApiResourceEntry {
  /** `virtualmachines/start` for a subresource. */
  readonly name: string;
  readonly singularName: string;
  readonly namespaced: boolean;
  readonly kind: string;
  readonly verbs: readonly string[];
  readonly group?: string;
  readonly version?: string;
}

/** One operation of such an API, as `/openapi/v2` describes it. */
export interface ApiOperation {
  readonly method: 'get' | 'put';
  /** Below the version, what varies in braces: `namespaces/{namespace}/virtualmachines/{name}/start`. */
  readonly path: string;
  /** The operationId without the version, which is put before it. */
  readonly id: string;
}

/**
 * Gets every resource request of its group, authenticated. Those in a namespace are not authorised yet: it asks
 * `authorize` itself, because it knows which right a path takes; that throws ApiError 403 where it is missing.
 */
export interface AggregatedApi {
  readonly group: string;
  /** In order of preference. */
  readonly versions: readonly string[];
  readonly discovery: readonly ApiResourceEntry[];
  readonly operations: readonly ApiOperation[];
  handle(request: ApiRequest, user: UserInfo, info: RequestInfo, authorize: Authorizer): Promise<ApiResponse>;
}

/** The API that answers for a group version in this process, where one does. */
export const aggregatedApi = (
  apis: readonly AggregatedApi[],
  { group, version }: Pick<RequestInfo, 'group' | 'version'>,
): AggregatedApi | undefined => apis.find((api) => api.group === group && api.versions.includes(version));
