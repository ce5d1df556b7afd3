/** Who is asking, and may they? The two questions of auth as types; rooms beside implement them. */

import type { FieldRequirement } from '@coracle/apimachinery/selector/field-selector';
import type { LabelSelector } from '@coracle/apimachinery/selector/label-selector';
import type { ApiRequest } from '@coracle/runtime/http/seam';

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

/** Neither allowed nor denied is no opinion: the next authorizer is asked, and after the last one it is a no. */
export interface AuthorizationDecision {
  readonly allowed: boolean;
  /** An explicit no: nobody behind is asked. */
  readonly denied?: boolean;
  /** Names the binding that allowed it, or why not. */
  readonly reason: string;
  /** What kept an authorizer from an answer. Where nobody allows it, this is no refusal but a failure (500). */
  readonly error?: string;
}

/** Answers at once wherever it can; a promise only where somebody outside has to be asked. Never rejects. */
export type Authorizer = (
  user: UserInfo,
  attributes: AuthorizationAttributes,
) => AuthorizationDecision | Promise<AuthorizationDecision>;

/** One that never has to wait. */
export type InstantAuthorizer = (user: UserInfo, attributes: AuthorizationAttributes) => AuthorizationDecision;

/** What there is to say of a credential beside whose it is: in the answer and in the audit event. */
export interface CredentialNotes {
  warn(text: string): void;
  annotate(key: string, value: string): void;
}

/**
 * The user (possibly `system:anonymous`), at once where the credential is known already. Throws, or rejects with,
 * ApiError 401 when a credential is present but not valid.
 */
export type Authenticator = (request: ApiRequest, notes?: CredentialNotes) => UserInfo | Promise<UserInfo>;
