/** Whether a webhook that is about a kind of write wants this very write (webhook/generic ShouldCallHook). */
import { forbidden } from '../../../api/meta/status.ts';
import type { ObjectStore } from '../../cache/object-store.ts';
import type { AuthorizerFor } from '../matching/expression-environment.ts';
import { matchesSelectors } from '../matching/selectors.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import type { Candidate } from './webhook-source.ts';

/** Throws ApiError: 404 without the namespace whose labels decide, 403 when a match condition fails and must not. */
export function shouldCall(
  { hook, matched }: Candidate,
  attributes: AdmissionAttributes,
  { store, authorizer }: { readonly store: Pick<ObjectStore, 'peek'>; readonly authorizer: AuthorizerFor },
): boolean {
  if (!matchesSelectors(hook.selectors, attributes, store)) return false;
  if (!hook.conditions) return true;
  const outcome = hook.conditions.match(attributes, { matched, params: null, authorizer });
  if (outcome.error !== undefined) {
    const name = attributes.name;
    throw forbidden(attributes.info, name, outcome.error);
  }
  return outcome.matches;
}
