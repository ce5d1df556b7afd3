/** Who is asking, and may they? The two questions of auth as types; rooms beside implement them. */

import type { FieldRequirement } from '../../api/selector/field-selector.ts';
import type { LabelSelector } from '../../api/selector/label-selector.ts';
import type { ApiRequest } from '../../base/http/seam.ts';

export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What authorisation is asked about (authorization.k8s.io SubjectAccessReview). */
export type AuthorizationAttributes =
  | {
      readonly type: 'resource';
      readonly verb: string;
      readonly group: string;
      readonly version: string;
      readonly resource: string;
      /** '' when none. */
      readonly subresource: string;
      readonly namespace: string;
      readonly name: string;
      /** What a list, watch or deletecollection is narrowed to, where that parsed. RBAC does not look at it. */
      readonly fieldSelector?: readonly FieldRequirement[];
      readonly labelSelector?: LabelSelector;
    }
  | { readonly type: 'path'; readonly verb: string; readonly path: string };

export interface AuthorizationVerdict {
  readonly allowed: boolean;
  /** Names the binding that allowed it, or why not. */
  readonly reason: string;
}

export type Authorizer = (user: UserInfo, attributes: AuthorizationAttributes) => AuthorizationVerdict;

/**
 * The user (possibly `system:anonymous`), at once where the credential is known already. Throws, or rejects with,
 * ApiError 401 when a credential is present but not valid.
 */
export type Authenticator = (request: ApiRequest) => UserInfo | Promise<UserInfo>;
