/** An API group answered by somebody else in this process: KubeVirt's `subresources.kubevirt.io`. */
import type { ApiRequest, ApiResponse } from '../../base/http/seam.ts';
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

/**
 * Gets every resource request of its group, authenticated. Those in a namespace are not authorised yet: it asks
 * `authorize` itself, because it knows which right a path takes; that throws ApiError 403 where it is missing.
 */
export interface AggregatedApi {
  readonly group: string;
  /** In order of preference. */
  readonly versions: readonly string[];
  readonly discovery: readonly ApiResourceEntry[];
  handle(request: ApiRequest, user: UserInfo, info: RequestInfo, authorize: Authorizer): Promise<ApiResponse>;
}
