/** Several authorizers as one: the first that allows or denies decides; when none does, their reasons stand one a line. */
import type { AuthorizationAttributes, AuthorizationDecision, Authorizer, UserInfo } from './identity.ts';

/** Asks in order (apiserver's authorizer/union), and waits only where one of them does. */
export function unionAuthorizer(authorizers: readonly Authorizer[]): Authorizer {
  return (user: UserInfo, attributes: AuthorizationAttributes) => {
    let said: Opinions | undefined;
    for (let i = 0; i < authorizers.length; i++) {
      const decision = authorizers[i]!(user, attributes);
      if (decision instanceof Promise) {
        return askRest(decision, authorizers.slice(i + 1), {
          user,
          attributes,
          said: said ?? { reasons: [], errors: [] },
        });
      }
      if (decision.allowed || decision.denied) return decision;
      said = noted(said, decision);
    }
    return concluded(said);
  };
}

/** What those had to say who had no opinion. */
interface Opinions {
  readonly reasons: string[];
  readonly errors: string[];
}

async function askRest(
  pending: Promise<AuthorizationDecision>,
  rest: readonly Authorizer[],
  {
    user,
    attributes,
    said,
  }: { readonly user: UserInfo; readonly attributes: AuthorizationAttributes; readonly said: Opinions },
): Promise<AuthorizationDecision> {
  let decision = await pending;
  for (const authorize of rest) {
    if (decision.allowed || decision.denied) return decision;
    noted(said, decision);
    decision = await authorize(user, attributes);
  }
  if (decision.allowed || decision.denied) return decision;
  return concluded(noted(said, decision));
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
