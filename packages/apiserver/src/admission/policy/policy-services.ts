/** What both policy plug-ins work with, and the small steps they share. */

import { ApiError, forbidden, notFound } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { ObjectStore, StoredObject } from '../../cache/object-store.ts';
import type { AdmissionMetrics } from '../admission-metrics.ts';
import { type AuthorizerFor, namespaceView } from '../matching/expression-environment.ts';
import { isNamespaceResource, namespaceOf } from '../matching/selectors.ts';
import type { ServedResources } from '../matching/served-kinds.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import { ConfigurationError, paramResource } from './params.ts';
import type { ParamKind } from './policy-types.ts';

export interface PolicyServices {
  readonly store: ObjectStore;
  readonly resources: ServedResources;
  readonly authorizer: AuthorizerFor;
  readonly metrics: AdmissionMetrics;
}

/** `namespaceObject`: null for what is in no namespace, and for namespaces themselves. Throws ApiError 404. */
export function namespaceObjectOf(
  attributes: AdmissionAttributes,
  store: Pick<ObjectStore, 'peek'>,
): Readonly<Record<string, unknown>> | null {
  const name = isNamespaceResource(attributes) ? '' : namespaceOf(attributes);
  if (name === '') return null;
  const found = store.peek({ prefix: '/namespaces', namespace: '', name });
  if (!found) throw notFound({ group: '', resource: 'namespaces' }, name);
  let view = namespaceViews.get(found);
  if (!view) {
    view = namespaceView(found.object);
    namespaceViews.set(found, view);
  }
  return view;
}

/** Of each revision of a namespace, for as long as it lives. */
const namespaceViews = new WeakMap<StoredObject, Readonly<Record<string, unknown>>>();

/** The resource of a policy's parameters; undefined when it takes none. Throws ConfigurationError. */
export const paramResourceOf = (
  { resources }: PolicyServices,
  kind: ParamKind | undefined,
): ResourceInfo | undefined => (kind ? paramResource(resources, kind) : undefined);

/** The text of what is wrong with the set-up; undefined for every other failure. */
export function configurationProblem(error: unknown): string | undefined {
  if (error instanceof ConfigurationError) return error.message;
  return error instanceof ApiError ? (error.status.message ?? '') : undefined;
}

/** What a conversion failed with, without the words of the error around it. */
export function conversionProblem(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const { details, message = '' } = error.status;
  return new ConfigurationError(details?.causes?.[0]?.message ?? message);
}

/** 403 as admission words it, with the best name there is for an object that may have none yet. */
export function admissionForbidden({ info, name, object }: AdmissionAttributes, why: string): ApiError {
  const best = name || object?.metadata?.name || object?.metadata?.generateName || 'Unknown';
  return forbidden(info, best, why);
}

const CODES: Readonly<Record<string, number>> = {
  Forbidden: 403,
  Unauthorized: 401,
  RequestEntityTooLarge: 413,
  Invalid: 422,
};

/** The HTTP code of a policy's reason. */
export const codeOfReason = (reason: string): number => CODES[reason] ?? 422;
