/** A request's options in the form that admission webhooks and policies see: an object of meta.k8s.io/v1. */
import type { AdmissionOperation } from '../admission/plugin.ts';
import { parseBody } from './body.ts';
import type { Exchange } from './exchange.ts';
import { isTrue } from './request-info.ts';

const KINDS: Partial<Record<AdmissionOperation, string>> = {
  CREATE: 'CreateOptions',
  UPDATE: 'UpdateOptions',
  DELETE: 'DeleteOptions',
};

/** Undefined for a CONNECT, which has none. */
export function operationOptions(
  exchange: Exchange,
  operation: AdmissionOperation,
): Readonly<Record<string, unknown>> | undefined {
  const kind = KINDS[operation];
  if (kind === undefined) return undefined;
  const head = { kind, apiVersion: 'meta.k8s.io/v1' };
  return operation === 'DELETE' ? { ...deleteOptions(exchange), ...head } : { ...head, ...writeOptions(exchange) };
}

function writeOptions({ query }: Exchange): Record<string, unknown> {
  const dryRun = query.getAll('dryRun');
  const fieldManager = query.get('fieldManager') ?? '';
  const fieldValidation = query.get('fieldValidation') ?? '';
  return {
    ...(dryRun.length > 0 && { dryRun }),
    ...(fieldManager !== '' && { fieldManager }),
    ...(fieldValidation !== '' && { fieldValidation }),
  };
}

/** As sent: the body has been checked by the verb. Other bodies (an Eviction) delete as well. */
function deleteOptions(exchange: Exchange): Record<string, unknown> {
  const { request, query } = exchange;
  if (request.body.length > 0) {
    const value = parseBody(exchange, undefined).value as Record<string, unknown>;
    return (value['kind'] === 'Eviction' ? (value['deleteOptions'] ?? {}) : value) as Record<string, unknown>;
  }
  const dryRun = query.getAll('dryRun');
  const grace = query.get('gracePeriodSeconds');
  const policy = query.get('propagationPolicy');
  const orphan = query.get('orphanDependents');
  return {
    ...(grace && { gracePeriodSeconds: Number(grace) }),
    ...(orphan !== null && { orphanDependents: isTrue(orphan) }),
    ...(policy && { propagationPolicy: policy }),
    ...(dryRun.length > 0 && { dryRun }),
  };
}
