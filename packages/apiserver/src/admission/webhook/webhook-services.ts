/** What both webhook plug-ins work with. */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { ObjectStore } from '../../cache/object-store.ts';
import type { AdmissionMetrics } from '../admission-metrics.ts';
import type { AuthorizerFor } from '../matching/expression-environment.ts';

export interface WebhookServices {
  /** Where the labels of namespaces are found. */
  readonly store: Pick<ObjectStore, 'peek'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** For match conditions that ask about rights. */
  readonly authorizer: AuthorizerFor;
  readonly metrics: AdmissionMetrics;
}
