/** What both webhook plug-ins work with. */
import type { Clock } from '../../../base/clock/clock.ts';
import type { Logger } from '../../../base/log/log.ts';
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
