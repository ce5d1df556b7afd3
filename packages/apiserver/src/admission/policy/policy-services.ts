/** What both policy plug-ins work with, and the small steps they share. */

import { ApiError, forbidden } from '@coracle/apimachinery/meta/status';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { ObjectStore, StoredObject } from '../../cache/object-store.ts';
import type { AdmissionMetrics } from '../admission-metrics.ts';
import { type AuthorizerFor, namespaceView } from '../matching/expression-environment.ts';
import { isNamespaceResource, namespaceOf, storedNamespace } from '../matching/selectors.ts';
import type { ServedResources } from '../matching/served-kinds.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import { ConfigurationError, paramResource } from './params.ts';
import type { BoundPolicy } from './policy-source.ts';
import type { PolicySpec } from './policy-types.ts';

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
  return getOrInsert(namespaceViews, storedNamespace(store, name), ({ object }) => namespaceView(object));
}

/** Of each revision of a namespace, for as long as it lives. */
const namespaceViews = new WeakMap<StoredObject, Readonly<Record<string, unknown>>>();

/** What a policy is about in a write; undefined when it is none of its business. Throws as the matcher, and ConfigurationError. */
export function targetOf(
  { matcher, spec }: Pick<BoundPolicy<PolicySpec, unknown>, 'matcher' | 'spec'>,
  attributes: AdmissionAttributes,
  { resources }: PolicyServices,
) {
  const matched = matcher.match(attributes);
  return matched && { matched, info: paramResource(resources, spec.paramKind) };
}

/**
 * What `act` returns; undefined where the set-up is wrong: `report` gets the text of that. Rejects with every other failure.
 * `as` says what a failure stands for.
 */
export async function attempted<T>(
  act: () => T | Promise<T>,
  report: (problem: string) => void,
  as: (error: unknown) => unknown = (error) => error,
): Promise<T | undefined> {
  try {
    return await act();
  } catch (failure) {
    const error = as(failure);
    if (error instanceof ConfigurationError) report(error.message);
    else if (error instanceof ApiError) report(error.status.message ?? '');
    else throw error;
    return undefined;
  }
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

const CODES: Readonly<Record<string, number>> = { Forbidden: 403, Unauthorized: 401, RequestEntityTooLarge: 413 };

/** The HTTP code of a policy's reason. */
export const codeOfReason = (reason: string): number => CODES[reason] ?? 422;
