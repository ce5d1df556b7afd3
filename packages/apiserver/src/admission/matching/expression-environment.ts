/** The values that expressions of match conditions, policies and mutations name, each made only when one asks for it. */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { AdmissionAttributes } from '../plugin.ts';
import { requestView } from './request-view.ts';
import type { ShownObjects } from './served-kinds.ts';

/** The values of `authorizer` and `authorizer.requestResource` for one request. */
export interface RequestAuthorizer {
  readonly authorizer: unknown;
  readonly requestResource: unknown;
}

export interface AuthorizerFor {
  (attributes: AdmissionAttributes): RequestAuthorizer;
  /** Resolves when what was asked for a request and not answered at once is answered; undefined when there is nothing. */
  readonly open?: (attributes: AdmissionAttributes) => Promise<unknown> | undefined;
}

/** For expressions that are compiled with an authorizer and evaluated without one. */
export const NO_AUTHORIZER: AuthorizerFor = () => ({ authorizer: undefined, requestResource: undefined });

/** The values of one write as its expressions see them: objects in the version that was matched. */
export class RequestBindings {
  readonly object: Readonly<UnstructuredObject> | null;
  readonly oldObject: Readonly<UnstructuredObject> | null;
  readonly namespaceObject: Readonly<Record<string, unknown>> | null;
  readonly params: Readonly<Record<string, unknown>> | null;
  /** Set by whoever evaluates variables. */
  variables: unknown;
  readonly #attributes: AdmissionAttributes;
  readonly #context;
  #request: Record<string, unknown> | undefined;
  #authorizer: RequestAuthorizer | undefined;

  constructor(
    attributes: AdmissionAttributes,
    context: {
      readonly matched: ResourceInfo;
      /** In the version of `matched`. */
      readonly shown: ShownObjects;
      /** What `request.resource` says; absent = `matched`. */
      readonly resource?: ResourceInfo;
      readonly authorizer: AuthorizerFor;
      readonly namespaceObject: Readonly<Record<string, unknown>> | null;
      readonly params: Readonly<Record<string, unknown>> | null;
    },
  ) {
    this.object = context.shown.object;
    this.oldObject = context.shown.oldObject;
    this.namespaceObject = context.namespaceObject;
    this.params = context.params;
    this.variables = undefined;
    this.#attributes = attributes;
    this.#context = context;
  }

  get request(): Record<string, unknown> {
    this.#request ??= requestView(this.#attributes, this.#context.matched, this.#context.resource);
    return this.#request;
  }

  get authorizer(): unknown {
    return this.#both().authorizer;
  }

  get ['authorizer.requestResource'](): unknown {
    return this.#both().requestResource;
  }

  #both(): RequestAuthorizer {
    this.#authorizer ??= this.#context.authorizer(this.#attributes);
    return this.#authorizer;
  }

  /** As the bindings of a program. */
  get values(): Readonly<Record<string, unknown>> {
    return this as unknown as Readonly<Record<string, unknown>>;
  }
}

/** The namespace as `namespaceObject` shows it: no owners, no field managers. */
export function namespaceView(namespace: Readonly<UnstructuredObject>): Readonly<Record<string, unknown>> {
  const { ownerReferences: _owners, managedFields: _managers, uid, ...metadata } = namespace.metadata;
  return {
    metadata: { ...metadata, ...(uid !== undefined && { UID: uid }) },
    spec: namespace['spec'] ?? {},
    status: namespace['status'] ?? {},
  };
}
