/** The guards of declared fields and of dependents as a webhook, for external API servers. What cannot be known is allowed, as upstream does. */
import { readReview, reviewAnswer, reviewProblem } from '@coracle/apimachinery/types/admission-review';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import { decideDelete } from './decide-delete.ts';
import { refusalOfWrite } from './decide-write.ts';

/** Where it is asked. */
export const GUARD_WEBHOOK_PATH = '/declared-fields-validate';

/**
 * The handler. `trusted`: accounts that may write anything; `isWhole`: whether declared fields are guarded, and not deletions
 * of what others depend on alone. Answers 400 to what is no review.
 */
export const createGuardWebhook =
  (trusted: readonly string[], isWhole: () => boolean): ApiHandler =>
  async ({ body }) => {
    const review = readReview(body);
    if (!review) return reviewProblem(400, 'the body is not an AdmissionReview of admission.k8s.io/v1');
    const { uid, operation, subResource = '', object, oldObject, userInfo, dryRun = false } = review;
    const isAsked = operation === 'CREATE' || operation === 'UPDATE' || operation === 'DELETE';
    // A dry run changes nothing, and a plan of a source is made of them.
    if (!isAsked || subResource !== '' || dryRun) return reviewAnswer({ uid, allowed: true });
    const username = userInfo?.username ?? '';
    const refusal = (message: string) =>
      reviewAnswer({ uid, allowed: false, status: { code: 403, reason: 'Forbidden', message } });
    if (isWhole()) {
      const message = refusalOfWrite(
        { operation, username, object: object ?? undefined, oldObject: oldObject ?? undefined },
        trusted,
      );
      if (message !== undefined) return refusal(message);
    }
    if (operation !== 'DELETE' || !oldObject) return reviewAnswer({ uid, allowed: true });
    const decided = decideDelete({ username, oldObject }, trusted);
    switch (decided.decision) {
      case 'allow':
        return reviewAnswer({ uid, allowed: true });
      case 'warn':
        return reviewAnswer({ uid, allowed: true, warnings: [decided.message] });
      case 'refuse':
        return refusal(decided.message);
    }
  };
