/**
 * Impersonate-* headers: a request made in another's name. Ignoring them would answer with the rights of the asker
 * instead. What the asker must be allowed: `impersonation-modes.ts`.
 */
import { badRequest } from '@coracle/apimachinery/meta/status';
import { headerValues, prefixedValues } from '../auth/header-values.ts';
import type { Exchange } from './exchange.ts';
import { type Impersonated, impersonate } from './impersonation-modes.ts';

const USER = 'impersonate-user';
const GROUP = 'impersonate-group';
const UID = 'impersonate-uid';
const EXTRA = 'impersonate-extra-';

/** Whom the request names in place of the authenticated user; undefined when nobody. Throws, or rejects with, ApiError 400, 403. */
export function impersonatedUser(exchange: Exchange): Promise<Impersonated> | undefined {
  const { request } = exchange;
  let asked = false;
  for (const name in request.headers) {
    if (name.startsWith('impersonate-')) asked = true;
  }
  if (!asked) return undefined;
  const username = request.headers[USER] ?? '';
  const groups = headerValues(request, GROUP);
  const uid = request.headers[UID] ?? '';
  const extra = prefixedValues(request, EXTRA);
  if (username === '') throw badRequest('requested groups, uid or extra values without impersonating a user');
  return impersonate(exchange, { username, groups, uid, extra });
}
