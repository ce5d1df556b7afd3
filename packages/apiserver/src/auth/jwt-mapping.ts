/**
 * From claims to a user by the rules of an AuthenticationConfiguration: claims with prefixes, or expressions over
 * `claims`; conditions on claims; and last, conditions on the `user` that came out (apiserver/pkg/authentication/cel).
 */

import type { JsonObject } from '@coracle/apimachinery/meta/own-property';
import { ANY, BOOL, type CelProgram, celBudget, compileCel, listOf, mapOf, objectOf, STRING } from '@coracle/cel/cel';
import type { UserInfo } from './identity.ts';
import { ClaimsRefused, groupsIn, requireClaim, textIn, usernameIn } from './jwt-claims.ts';

const CLAIMS = mapOf(STRING, ANY);
const USER = objectOf('kubernetes.UserInfo', {
  username: STRING,
  uid: STRING,
  groups: listOf(STRING),
  extra: mapOf(STRING, listOf(STRING)),
});

/** What one expression may cost. All of them together have no bound but their number. */
const PER_CALL = 1_000_000;

/** Compiles an expression over `claims`, of any result or of bool. Throws CelCompileError. */
export const compileClaimsExpression = (expression: string, result: 'any' | 'bool'): CelProgram =>
  compileCel(expression, { variables: { claims: CLAIMS }, ...(result === 'bool' && { resultTypes: [BOOL] }) });

/** Compiles a condition on `user`. Throws CelCompileError. */
export const compileUserExpression = (expression: string): CelProgram =>
  compileCel(expression, { variables: { user: USER }, resultTypes: [BOOL] });

/** Where a value comes from. */
export type ClaimSource = { readonly claim: string; readonly prefix: string } | { readonly expression: CelProgram };

export interface Condition {
  readonly expression: CelProgram;
  readonly message: string;
}

export interface JwtMapping {
  readonly username: ClaimSource;
  readonly groups?: ClaimSource;
  readonly uid?: ClaimSource;
  readonly extra: readonly { readonly key: string; readonly expression: CelProgram }[];
  readonly requiredClaims: readonly { readonly claim: string; readonly value: string }[];
  readonly claimConditions: readonly Condition[];
  readonly userConditions: readonly Condition[];
}

/** The user that the rules make of claims, without the groups everybody has. Throws ClaimsRefused. */
export function mappedUser(mapping: JwtMapping, claims: JsonObject): UserInfo {
  const { username, groups, uid } = mapping;
  const bindings = { claims };
  const name =
    'claim' in username
      ? `${username.prefix}${usernameIn(claims, username.claim)}`
      : nameFrom(username.expression, bindings);
  const member = groups === undefined ? [] : groupsFrom(groups, claims);
  const id =
    uid === undefined ? '' : 'claim' in uid ? textIn(claims, uid.claim) : textFrom('uid', uid.expression, bindings);
  const extra: Record<string, readonly string[]> = {};
  for (const { key, expression } of mapping.extra) {
    const wrong = `${failedClaim('extra')}${expression.expression}: `;
    const values = textsFrom(expression, bindings, { failed: '', wrong });
    if (values.length > 0) extra[key] = values;
  }
  for (const { claim, value } of mapping.requiredClaims) requireClaim(claims, claim, value);
  check(mapping.claimConditions, bindings, 'oidc: error evaluating claim validation expression: ');
  const user = { username: name, uid: id, groups: member, extra };
  check(mapping.userConditions, { user }, 'oidc: error evaluating user info validation rule: ');
  return {
    username: name,
    groups: member,
    ...(id !== '' && { uid: id }),
    ...(Object.keys(extra).length > 0 && { extra }),
  };
}

const groupsFrom = (source: ClaimSource, claims: JsonObject): readonly string[] =>
  'claim' in source
    ? groupsIn(claims, source.claim).map((group) => `${source.prefix}${group}`)
    : textsFrom(source.expression, { claims }, { failed: failedClaim('group'), wrong: failedClaim('group') });

type Bindings = Readonly<Record<string, unknown>>;

const failedClaim = (claim: string): string => `oidc: error evaluating ${claim} claim expression: `;

function check(conditions: readonly Condition[], bindings: Bindings, failed: string): void {
  for (const { expression, message } of conditions) {
    if (evaluated(expression, bindings, failed) !== true)
      throw new ClaimsRefused(`${failed}validation expression '${expression.expression}' failed: ${message}`);
  }
}

function nameFrom(expression: CelProgram, bindings: Bindings): string {
  const name = textFrom('username', expression, bindings);
  if (name === '')
    throw new ClaimsRefused(`${failedClaim('username')}expression '${expression.expression}' gives an empty name`);
  return name;
}

function textFrom(claim: 'username' | 'uid', expression: CelProgram, bindings: Bindings): string {
  const value = evaluated(expression, bindings, failedClaim(claim));
  if (typeof value !== 'string')
    throw new ClaimsRefused(`${failedClaim(claim)}${claim} claim expression must return a string`);
  return value;
}

/** A text or a list of texts, without empty ones. */
function textsFrom(
  expression: CelProgram,
  bindings: Bindings,
  { failed, wrong }: { readonly failed: string; readonly wrong: string },
): readonly string[] {
  const value = evaluated(expression, bindings, failed);
  const list: readonly unknown[] = value === null ? [] : Array.isArray(value) ? value : [value];
  if (!list.every((one) => typeof one === 'string'))
    throw new ClaimsRefused(`${wrong}expression must return a string or a list of strings`);
  return (list as readonly string[]).filter((one) => one !== '');
}

function evaluated(expression: CelProgram, bindings: Bindings, failed: string): unknown {
  try {
    return expression.run(bindings, celBudget(PER_CALL, PER_CALL));
  } catch (error) {
    const why = (error as Error).message;
    throw new ClaimsRefused(`${failed}expression '${expression.expression}' resulted in error: ${why}`);
  }
}
