/** DeleteOptions: the body when there is one, else the query. */

import { wrongType } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, badRequest, type FieldError, invalid } from '@coracle/apimachinery/meta/status';
import { decodeProblem } from '@coracle/apimachinery/schema/decode-errors';
import { builtinSchema } from '@coracle/apimachinery/types/builtin-types';
import { invalid as invalidValue } from '@coracle/apimachinery/validation/field-errors';
import type { DeleteOptions } from '../registry/graceful-deletion.ts';
import { parseBody } from './body.ts';
import type { Exchange } from './exchange.ts';
import { dryRunErrors, int64Of, type Query } from './query.ts';
import { isTrue } from './request-info.ts';

const POLICIES = ['Background', 'Foreground', 'Orphan'];

export interface ParsedDeleteOptions {
  readonly options: DeleteOptions;
  readonly dryRun: boolean;
}

/** Throws ApiError 400 when a value has the wrong type, 422 when values contradict one another. */
export function parseDeleteOptions(exchange: Exchange): ParsedDeleteOptions {
  if (exchange.request.body.length === 0) return validated(fromQuery(exchange.query));
  let body: unknown;
  try {
    body = parseBody(exchange, undefined).value;
  } catch (error) {
    if (!(error instanceof ApiError) || !error.message.startsWith('json parse error')) throw error;
    throw badRequest(`couldn't get version/kind; ${error.message}`);
  }
  return readDeleteOptions(body ?? {});
}

/** DeleteOptions as a JSON value: a body, or the `deleteOptions` of an Eviction. Any group may have sent them. */
export function readDeleteOptions(value: unknown): ParsedDeleteOptions {
  if (!isJsonObject(value)) {
    throw badRequest(`couldn't get version/kind; json parse error: ${wrongType(value, 'object')}`);
  }
  const { kind, apiVersion } = value;
  if (kind && kind !== 'DeleteOptions') {
    const version = typeof apiVersion === 'string' && apiVersion !== '' ? apiVersion : 'v1';
    throw badRequest(
      `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(version)} in scheme "${SCHEME}"`,
    );
  }
  const problem = decodeProblem(builtinSchema('io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions'), value);
  if (problem !== undefined) throw badRequest(problem);
  return validated(Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null)));
}

interface RawOptions {
  readonly gracePeriodSeconds?: number | undefined;
  readonly propagationPolicy?: string | undefined;
  readonly orphanDependents?: boolean | undefined;
  readonly dryRun?: readonly string[];
  readonly preconditions?: { readonly uid?: string | null; readonly resourceVersion?: string | null };
}

function fromQuery(query: Query): RawOptions {
  const grace = query.get('gracePeriodSeconds');
  const orphan = query.get('orphanDependents');
  return {
    gracePeriodSeconds: grace === null ? undefined : int64Of(grace),
    propagationPolicy: query.get('propagationPolicy') ?? undefined,
    orphanDependents: orphan === null ? undefined : isTrue(orphan),
    dryRun: query.getAll('dryRun'),
  };
}

function validated(raw: RawOptions): ParsedDeleteOptions {
  const { dryRun = [], preconditions: { uid, resourceVersion } = {} } = raw;
  const errors: FieldError[] = dryRunErrors(dryRun);
  const policy = raw.propagationPolicy || undefined;
  if (raw.orphanDependents !== undefined && policy !== undefined) {
    errors.push(
      invalidValue('propagationPolicy', policy, 'orphanDependents and deletionPropagation cannot be both set'),
    );
  } else if (policy !== undefined && !POLICIES.includes(policy)) {
    errors.push({
      type: 'FieldValueNotSupported',
      field: 'propagationPolicy',
      value: policy,
      detail: 'supported values: "Foreground", "Background", "Orphan", "nil"',
    });
  }
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', errors);
  return {
    dryRun: dryRun.length > 0,
    options: {
      ...(raw.gracePeriodSeconds !== undefined && { gracePeriodSeconds: raw.gracePeriodSeconds }),
      ...(policy !== undefined && { propagationPolicy: policy as NonNullable<DeleteOptions['propagationPolicy']> }),
      ...(raw.orphanDependents !== undefined && { orphanDependents: raw.orphanDependents }),
      preconditions: { ...(uid != null && { uid }), ...(resourceVersion != null && { resourceVersion }) },
    },
  };
}

/** Where upstream makes the scheme that knows DeleteOptions. */
const SCHEME = 'k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27';
