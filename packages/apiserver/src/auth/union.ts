/** Several authorizers as one: the first that allows or denies decides; when none does, their reasons stand one a line. */
import type { AuthorizationAttributes, AuthorizationVerdict, Authorizer, UserInfo } from './identity.ts';

/** Asks in order (apiserver's authorizer/union), and waits only where one of them does. */
export function unionAuthorizer(authorizers: readonly Authorizer[]): Authorizer {
  return (user: UserInfo, attributes: AuthorizationAttributes) => {
    let said: Said | undefined;
    for (let i = 0; i < authorizers.length; i++) {
      const verdict = authorizers[i]!(user, attributes);
      if (verdict instanceof Promise) {
        return askRest(verdict, authorizers.slice(i + 1), {
          user,
          attributes,
          said: said ?? { reasons: [], errors: [] },
        });
      }
      if (verdict.allowed || verdict.denied) return verdict;
      said = noted(said, verdict);
    }
    return concluded(said);
  };
}

/** What those had to say who had no opinion. */
interface Said {
  readonly reasons: string[];
  readonly errors: string[];
}

async function askRest(
  pending: Promise<AuthorizationVerdict>,
  rest: readonly Authorizer[],
  {
    user,
    attributes,
    said,
  }: { readonly user: UserInfo; readonly attributes: AuthorizationAttributes; readonly said: Said },
): Promise<AuthorizationVerdict> {
  let verdict = await pending;
  for (const authorize of rest) {
    if (verdict.allowed || verdict.denied) return verdict;
    noted(said, verdict);
    verdict = await authorize(user, attributes);
  }
  if (verdict.allowed || verdict.denied) return verdict;
  return concluded(noted(said, verdict));
}

/** Nearly always nobody says anything: nothing is made for it. */
function noted(said: Said | undefined, { reason, error }: AuthorizationVerdict): Said | undefined {
  if (reason === '' && error === undefined) return said;
  const all = said ?? { reasons: [], errors: [] };
  if (reason !== '') all.reasons.push(reason);
  if (error !== undefined) all.errors.push(error);
  return all;
}

const NO_OPINION: AuthorizationVerdict = { allowed: false, reason: '' };

function concluded(said: Said | undefined): AuthorizationVerdict {
  if (!said) return NO_OPINION;
  const error = aggregated(said.errors);
  return { allowed: false, reason: said.reasons.join('\n'), ...(error !== undefined && { error }) };
}

/** Errors as apimachinery's Aggregate tells them; undefined when there is none. */
export function aggregated(errors: readonly string[]): string | undefined {
  const distinct = [...new Set(errors)];
  return distinct.length > 1 ? `[${distinct.join(', ')}]` : distinct[0];
}
