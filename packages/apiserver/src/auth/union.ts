/** Several authorizers as one: the first that allows or denies decides; when none does, their reasons stand one a line. */
import type { AuthorizationDecision, Authorizer } from './identity.ts';

/** Asks in order (apiserver's authorizer/union), and waits only where one of them does. */
export function unionAuthorizer(authorizers: readonly Authorizer[]): Authorizer {
  const ask = (question: Parameters<Authorizer>, from: number, before?: Opinions): ReturnType<Authorizer> => {
    let said = before;
    for (let i = from; i < authorizers.length; i++) {
      const decision = authorizers[i]!(...question);
      if (decision instanceof Promise) {
        const known = said;
        return decision.then((late) => (decides(late) ? late : ask(question, i + 1, noted(known, late))));
      }
      if (decides(decision)) return decision;
      said = noted(said, decision);
    }
    return concluded(said);
  };
  return (...question) => ask(question, 0);
}

const decides = ({ allowed, denied }: AuthorizationDecision): boolean => allowed || denied === true;

/** What those had to say who had no opinion. */
interface Opinions {
  readonly reasons: string[];
  readonly errors: string[];
}

/** Nearly always nobody says anything: nothing is made for it. */
function noted(said: Opinions | undefined, { reason, error }: AuthorizationDecision): Opinions | undefined {
  if (reason === '' && error === undefined) return said;
  const all = said ?? { reasons: [], errors: [] };
  if (reason !== '') all.reasons.push(reason);
  if (error !== undefined) all.errors.push(error);
  return all;
}

const NO_OPINION: AuthorizationDecision = { allowed: false, reason: '' };

function concluded(said: Opinions | undefined): AuthorizationDecision {
  if (!said) return NO_OPINION;
  const error = aggregated(said.errors);
  return { allowed: false, reason: said.reasons.join('\n'), ...(error !== undefined && { error }) };
}

/** Errors as apimachinery's Aggregate tells them; undefined when there is none. */
export function aggregated(errors: readonly string[]): string | undefined {
  const distinct = [...new Set(errors)];
  return distinct.length > 1 ? `[${distinct.join(', ')}]` : distinct[0];
}
