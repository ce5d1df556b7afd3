/** Whether a webhook that is about a kind of write wants this very write (webhook/generic ShouldCallHook). */
import { forbidden } from '@coracle/apimachinery/meta/status';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { ObjectStore } from '../../cache/object-store.ts';
import type { AdmissionMetrics } from '../admission-metrics.ts';
import type { AuthorizerFor } from '../matching/expression-environment.ts';
import { whenAnswered } from '../matching/request-authorizer.ts';
import { matchesSelectors } from '../matching/selectors.ts';
import { showObjects } from '../matching/served-kinds.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import type { Candidate } from './webhook-source.ts';

/** What both webhook plug-ins work with. */
export interface WebhookServices {
  /** Where the labels of namespaces are found. */
  readonly store: Pick<ObjectStore, 'peek'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** For match conditions that ask about rights. */
  readonly authorizer: AuthorizerFor;
  readonly metrics: AdmissionMetrics;
}

/**
 * A promise only where a condition asks an authorizer, or is shown an object, that has to be waited for. Throws, or rejects with, ApiError: 404
 * without the namespace whose labels decide, 403 when a match condition fails and must not.
 */
export function shouldCall(
  { hook, matched }: Candidate,
  attributes: AdmissionAttributes,
  { store, authorizer }: WebhookServices,
): boolean | Promise<boolean> {
  const { conditions, selectors } = hook;
  if (!matchesSelectors(selectors, attributes, store)) return false;
  if (!conditions) return true;
  const decide = async (): Promise<boolean> => {
    const shown = await showObjects(attributes, matched);
    const match = () => conditions.match(attributes, { matched, shown, params: null, authorizer });
    const { matches, error } = await whenAnswered(authorizer, attributes, match);
    if (error !== undefined) throw forbidden(attributes.info, attributes.name, error);
    return matches;
  };
  return decide();
}
