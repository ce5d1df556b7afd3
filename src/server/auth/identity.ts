/** Who is asking, and may they? The two questions of auth as types; rooms beside implement them. */

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
    }
  | { readonly type: 'path'; readonly verb: string; readonly path: string };

export interface AuthorizationVerdict {
  readonly allowed: boolean;
  /** Names the binding that allowed it, or why not. */
  readonly reason: string;
}

export type Authorizer = (user: UserInfo, attributes: AuthorizationAttributes) => AuthorizationVerdict;

import type { ApiRequest } from '../../base/http/seam.ts';

/** Resolves to the user (possibly `system:anonymous`); throws ApiError 401 when a credential is present but not valid. */
export type Authenticator = (request: ApiRequest) => Promise<UserInfo>;
