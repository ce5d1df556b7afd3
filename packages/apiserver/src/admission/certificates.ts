/**
 * CertificateSigningRequests: what may be asked for (validation.go), who may approve and sign for which signer
 * (CertificateApproval, CertificateSigning), and that nobody gets a certificate of group system:masters
 * (CertificateSubjectRestriction). Conditions get their times here, as by the strategy.
 */

import {
  type CertificateRequest,
  checkRequestSignature,
  parseCertificateRequest,
} from '@coracle/apimachinery/certificates/certificate-request';
import { issuedCertificateProblem } from '@coracle/apimachinery/certificates/issued-certificate';
import { CLIENT_SIGNER, LEGACY_SIGNER } from '@coracle/apimachinery/certificates/kubelet-request';
import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { checkLabelName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import { formatTime, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { type FieldError, forbidden, invalid } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type {
  CertificateSigningRequestSpec,
  CertificateSigningRequestStatus,
  CertificateSigningRequestCondition as Condition,
} from '@coracle/apimachinery/types/types';
import {
  duplicate,
  invalidEach,
  forbidden as refused,
  required,
  tooLong,
  unsupported,
  invalid as wrong,
} from '@coracle/apimachinery/validation/field-errors';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Authorizer } from '../auth/identity.ts';
import { validateByRules } from '../kinds/builtin/validation/table-rules.ts';
import rules from './certificate-rules.json' with { type: 'json' };
import type { AdmissionAttributes, AdmissionPlugin } from './plugin.ts';

const GROUP = 'certificates.k8s.io';
const KIND = { group: GROUP, kind: 'CertificateSigningRequest' };
const MASTERS = 'system:masters';

type Parts = { spec?: Partial<CertificateSigningRequestSpec>; status?: CertificateSigningRequestStatus };

const partsOf = (object: Readonly<UnstructuredObject> | undefined): Parts => (object ?? {}) as Parts;

const isRequest = (info: Pick<ResourceInfo, 'group' | 'resource'>): boolean =>
  info.resource === 'certificatesigningrequests' && info.group === GROUP;

/** A request says who made it, in the server's words (certificates/strategy.go). */
export const certificateRequestor: AdmissionPlugin = {
  name: 'CertificateRequestor',
  matches: (operation, info, subresource) => operation === 'CREATE' && subresource === '' && isRequest(info),
  mutate({ object, user: { username, groups, uid, extra } }) {
    const spec = object!['spec'];
    if (!isJsonObject(spec)) return;
    const { uid: _uid, extra: _extra, ...rest } = spec;
    object!['spec'] = cloneJson({
      ...rest,
      username,
      groups,
      ...(uid !== undefined && { uid }),
      ...(extra && { extra }),
    });
  },
};

/** The plug-ins, in upstream's order. */
export function certificatePlugins(clock: Pick<Clock, 'now'>, authorize: Authorizer): AdmissionPlugin[] {
  const may = async (attributes: AdmissionAttributes, verb: 'approve' | 'sign'): Promise<void> => {
    const { user, oldObject, info, name } = attributes;
    const signer = partsOf(oldObject).spec?.signerName ?? '';
    const signers = { group: GROUP, version: '*', resource: 'signers', subresource: '', namespace: '' };
    const allows = async (one: string): Promise<boolean> =>
      (await authorize(user, { type: 'resource', verb, ...signers, name: one })).allowed;
    if (!(await allows(signer)) && !(await allows(`${signer.split('/')[0]}/*`)))
      throw forbidden(info, name, `user not permitted to ${verb} requests with signerName ${JSON.stringify(signer)}`);
  };
  return [
    {
      name: 'CertificateApproval',
      matches: (operation, info, subresource) =>
        operation === 'UPDATE' && subresource === 'approval' && isRequest(info),
      mutate: (attributes) => stampConditions(attributes, formatTime(clock.now())),
      async validate(attributes) {
        await may(attributes, 'approve');
        checkConditions(attributes);
      },
    },
    {
      name: 'CertificateSigning',
      matches: (operation, info, subresource) => operation === 'UPDATE' && subresource === 'status' && isRequest(info),
      mutate: (attributes) => stampConditions(attributes, formatTime(clock.now())),
      async validate(attributes) {
        const [before, after] = [partsOf(attributes.oldObject).status, partsOf(attributes.object).status];
        const same = deepEqual(before?.conditions ?? [], after?.conditions ?? []);
        if (before?.certificate !== after?.certificate || !same) await may(attributes, 'sign');
        checkConditions(attributes);
      },
    },
    {
      name: 'CertificateSubjectRestriction',
      matches: (operation, info, subresource) => operation === 'CREATE' && subresource === '' && isRequest(info),
      validate: checkNewRequest,
    },
  ];
}

const decodedText = (base64: string): string => new TextDecoder().decode(decodeBase64(base64));

async function checkNewRequest({ object, info, name }: AdmissionAttributes): Promise<void> {
  const { spec = {} } = partsOf(object);
  let parsed: CertificateRequest | undefined;
  let problem: string | undefined;
  try {
    parsed = parseCertificateRequest(decodedText(spec.request ?? ''));
    problem = await checkRequestSignature(parsed);
  } catch (error) {
    problem = (error as Error).message;
  }
  const errors: FieldError[] = [];
  if (problem) errors.push(wrong('spec.request', spec.request ?? '', problem));
  validateSpec(errors, spec);
  if (errors.length > 0) throw invalid(KIND, object?.metadata.name ?? '', errors);
  if (spec.signerName === CLIENT_SIGNER && parsed?.organizations.includes(MASTERS))
    throw forbidden(info, name, `use of ${CLIENT_SIGNER} signer with ${MASTERS} group is not allowed`);
}

/** An answer shows a thousand mistakes: of so many no more are looked for. */
const MOST_FOUND = 2000;

function validateSpec(errors: FieldError[], spec: NonNullable<Parts['spec']>): void {
  // There are two dozen usages, each may stand once: a longer list is refused for what stands at its beginning.
  const self = { ...spec, usages: (spec.usages ?? []).slice(0, MOST_FOUND) };
  validateByRules(errors, rules, { self, at: 'spec', name: '' });
  const { signerName = '' } = spec;
  const signer = 'spec.signerName';
  if (signerName !== LEGACY_SIGNER) errors.push(...signerNameErrors(signerName, signer));
  else errors.push(wrong(signer, signerName, 'the legacy signerName is not allowed via this API version'));
}

/** A condition says when it was written and when it last changed. */
function stampConditions({ object, oldObject }: AdmissionAttributes, now: string): void {
  const before = Map.groupBy(partsOf(oldObject).status?.conditions ?? [], ({ type }) => type);
  for (const condition of partsOf(object).status?.conditions ?? []) {
    const held = before.get(condition.type)?.[0];
    condition.lastUpdateTime ||= now;
    condition.lastTransitionTime ||= (held && held.status === condition.status && held.lastTransitionTime) || now;
  }
}

/** Conditions that are true, or are not there. */
const PERMANENT = ['Approved', 'Denied', 'Failed'];
/** Those that the approval endpoint alone gives. */
const DECISIONS = ['Approved', 'Denied'];
const STATUSES = ['False', 'True', 'Unknown'];
const CONDITIONS = 'status.conditions';

function checkConditions({ object, oldObject, subresource }: AdmissionAttributes): void {
  const conditions = partsOf(object).status?.conditions ?? [];
  const before = partsOf(oldObject).status?.conditions ?? [];
  const errors: FieldError[] = [];
  const types = new Set<string>();
  for (const [at, { type = '', status = '' }] of conditions.entries()) {
    if (errors.length >= MOST_FOUND) break;
    const field = `${CONDITIONS}[${at}]`;
    const allowed = PERMANENT.includes(type) ? ['True'] : STATUSES;
    if (type === '') errors.push(required(`${field}.type`));
    if (status === '') errors.push(required(`${field}.status`));
    else if (!allowed.includes(status)) errors.push(unsupported(`${field}.status`, status, allowed));
    const isContrary = DECISIONS.includes(type) && DECISIONS.some((one) => one !== type && types.has(one));
    if (isContrary) errors.push(wrong(`${field}.type`, type, 'Approved and Denied conditions are mutually exclusive'));
    if (types.has(type)) errors.push(duplicate(`${field}.type`, type));
    types.add(type);
  }
  const count = (list: readonly Condition[], type: string): number => list.filter((one) => one.type === type).length;
  const refuse = (what: 'add' | 'remove', type: string): void => {
    errors.push(refused(CONDITIONS, `updates may not ${what} a condition of type ${JSON.stringify(type)}`));
  };
  for (const type of PERMANENT) if (count(conditions, type) < count(before, type)) refuse('remove', type);
  for (const type of subresource === 'approval' ? [] : DECISIONS) {
    if (count(conditions, type) > count(before, type)) refuse('add', type);
  }
  const issued = partsOf(oldObject).status?.certificate;
  const certificate = partsOf(object).status?.certificate;
  // One that came here before it was validated stays.
  const problem =
    certificate && certificate !== issued ? issuedCertificateProblem(decodedText(certificate)) : undefined;
  if (problem !== undefined) errors.push(wrong('status.certificate', '<certificate data>', problem));
  if (issued && certificate !== issued) {
    errors.push(refused('status.certificate', 'updates may not modify existing certificate content'));
  }
  if (errors.length > 0) throw invalid(KIND, object?.metadata.name ?? '', errors);
}

const LONGEST_DOMAIN = 253;
/** A domain, and a path that holds a name in a namespace. */
const LONGEST_NAME = LONGEST_DOMAIN + 1 + LONGEST_DOMAIN + 1 + 63;

/** What is wrong with the name of a signer (ValidateSignerName in core/validation). Of each part only the first label that is none is reported. */
function signerNameErrors(name: string, at: string): FieldError[] {
  if (name === '') return [required(at)];
  const [domain = '', path, ...more] = name.split('/');
  if (path === undefined || more.length > 0) {
    return [wrong(at, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")];
  }
  const labels = domain.split('.');
  const errors = domain.length > LONGEST_DOMAIN ? [tooLong(at, LONGEST_DOMAIN)] : [];
  errors.push(...firstProblems(labels, checkLabelName, { at, part: domain }));
  if (labels.length < 2) {
    errors.push(wrong(at, domain, 'should be a domain with at least two segments separated by dots'));
  }
  errors.push(...firstProblems(path.split('.'), checkSubdomain, { at, part: path }));
  return name.length > LONGEST_NAME ? [...errors, tooLong(at, LONGEST_NAME)] : errors;
}

function firstProblems(
  labels: readonly string[],
  check: (label: string) => readonly string[],
  { at, part }: { readonly at: string; readonly part: string },
): FieldError[] {
  const wrong = labels.find((label) => check(label).length > 0);
  if (wrong === undefined) return [];
  return invalidEach(
    at,
    part,
    check(wrong).map((detail) => `validating label ${JSON.stringify(wrong)}: ${detail}`),
  );
}
