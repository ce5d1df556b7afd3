/**
 * CertificateSigningRequests: what may be asked for (validation.go), who may approve and sign for which signer
 * (CertificateApproval, CertificateSigning), and that nobody gets a certificate of group system:masters
 * (CertificateSubjectRestriction). Conditions get their times here, as by the strategy.
 */
import {
  type CertificateRequest,
  checkRequestSignature,
  parseCertificateRequest,
} from '../../api/certificates/certificate-request.ts';
import { CLIENT_SIGNER, LEGACY_SIGNER } from '../../api/certificates/kubelet-request.ts';
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import { decodeBase64 } from '../../api/meta/base64.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import { formatTime, type UnstructuredObject } from '../../api/meta/object.ts';
import { type FieldError, forbidden, invalid } from '../../api/meta/status.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Authorizer } from '../auth/identity.ts';
import type { AdmissionAttributes, AdmissionPlugin } from './plugin.ts';

const GROUP = 'certificates.k8s.io';
const KIND = { group: GROUP, kind: 'CertificateSigningRequest' };
const MASTERS = 'system:masters';

interface Condition {
  type?: string;
  status?: string;
  reason?: string;
  message?: string;
  lastUpdateTime?: string;
  lastTransitionTime?: string;
}

interface Parts {
  spec?: { request?: string; signerName?: string; usages?: string[]; expirationSeconds?: number };
  status?: { certificate?: string; conditions?: Condition[] };
}

const partsOf = (object: Readonly<UnstructuredObject> | undefined): Parts => (object ?? {}) as Parts;

const isRequest = (info: Pick<ResourceInfo, 'group' | 'resource'>): boolean =>
  info.resource === 'certificatesigningrequests' && info.group === GROUP;

export interface CertificateAdmissionOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** Absent = whoever may write the subresource may write it for any signer. */
  readonly authorize?: Authorizer;
}

/** The plug-ins, in upstream's order. */
export function certificatePlugins({ clock, authorize }: CertificateAdmissionOptions): AdmissionPlugin[] {
  const may = async (attributes: AdmissionAttributes, verb: 'approve' | 'sign'): Promise<void> => {
    const { user, oldObject, info, name } = attributes;
    const signer = partsOf(oldObject).spec?.signerName ?? '';
    const allows = async (one: string): Promise<boolean> => {
      const verdict = await authorize?.(user, {
        type: 'resource',
        verb,
        group: GROUP,
        version: '*',
        resource: 'signers',
        subresource: '',
        namespace: '',
        name: one,
      });
      return verdict?.allowed ?? true;
    };
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
        if (before?.certificate !== after?.certificate || !deepEqual(before?.conditions ?? [], after?.conditions ?? []))
          await may(attributes, 'sign');
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

async function checkNewRequest({ object, info, name }: AdmissionAttributes): Promise<void> {
  const { spec = {} } = partsOf(object);
  let parsed: CertificateRequest | undefined;
  let problem: string | undefined;
  try {
    parsed = parseCertificateRequest(new TextDecoder().decode(decodeBase64(spec.request ?? '')));
    problem = await checkRequestSignature(parsed);
  } catch (error) {
    problem = (error as Error).message;
  }
  const errors = [...(problem ? [requestError(spec.request, problem)] : []), ...specErrors(spec)];
  if (errors.length > 0) throw invalid(KIND, object?.metadata.name ?? '', errors);
  if (spec.signerName === CLIENT_SIGNER && parsed?.organizations.includes(MASTERS))
    throw forbidden(info, name, `use of ${CLIENT_SIGNER} signer with ${MASTERS} group is not allowed`);
}

const requestError = (value: string | undefined, detail: string): FieldError => ({
  type: 'FieldValueInvalid',
  field: 'spec.request',
  value: value ?? '',
  detail,
});

const MIN_SECONDS = 600;
const USAGES: readonly string[] = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
];

function specErrors({ usages = [], signerName = '', expirationSeconds }: NonNullable<Parts['spec']>): FieldError[] {
  const errors: FieldError[] = [];
  if (usages.length === 0)
    errors.push({ type: 'FieldValueRequired', field: 'spec.usages', detail: 'usages must be provided' });
  usages.forEach((usage, at) => {
    if (!USAGES.includes(usage))
      errors.push({
        type: 'FieldValueNotSupported',
        field: `spec.usages[${at}]`,
        value: usage,
        detail: `supported values: ${USAGES.map((one) => JSON.stringify(one)).join(', ')}`,
      });
    else if (usages.indexOf(usage) < at)
      errors.push({ type: 'FieldValueDuplicate', field: `spec.usages[${at}]`, value: usage });
  });
  const signer = (detail: string): FieldError => ({
    type: 'FieldValueInvalid',
    field: 'spec.signerName',
    value: signerName,
    detail,
  });
  if (signerName === '') errors.push({ type: 'FieldValueRequired', field: 'spec.signerName' });
  else if (signerName === LEGACY_SIGNER)
    errors.push(signer('the legacy signerName is not allowed via this API version'));
  else if (!/^[^/]+\.[^/]+\/.+$/.test(signerName) || signerName.split('/').length !== 2)
    errors.push(signer(`must be a fully qualified domain and path of the form 'example.com/signer-name'`));
  if (expirationSeconds !== undefined && expirationSeconds !== null && expirationSeconds < MIN_SECONDS)
    errors.push({
      type: 'FieldValueInvalid',
      field: 'spec.expirationSeconds',
      value: expirationSeconds,
      detail: `may not specify a duration less than ${MIN_SECONDS} seconds (10 minutes)`,
    });
  return errors;
}

/** A condition says when it was written and when it last changed. */
function stampConditions({ object, oldObject }: AdmissionAttributes, now: string): void {
  const before = partsOf(oldObject).status?.conditions ?? [];
  for (const condition of partsOf(object).status?.conditions ?? []) {
    const held = before.find(({ type }) => type === condition.type);
    condition.lastUpdateTime ||= now;
    if (held?.status === condition.status && held?.lastTransitionTime) {
      condition.lastTransitionTime ||= held.lastTransitionTime;
    } else condition.lastTransitionTime ||= now;
  }
}

const VERDICTS = ['Approved', 'Denied', 'Failed'];

function checkConditions({ object, oldObject }: AdmissionAttributes): void {
  const conditions = partsOf(object).status?.conditions ?? [];
  const errors: FieldError[] = [];
  const field = 'status.conditions';
  const types = new Set<string>();
  conditions.forEach(({ type = '', status = '' }, at) => {
    if (type === '') errors.push({ type: 'FieldValueRequired', field: `${field}[${at}].type` });
    else if (types.has(type)) errors.push({ type: 'FieldValueDuplicate', field: `${field}[${at}].type`, value: type });
    types.add(type);
    if (VERDICTS.includes(type) && status !== 'True')
      errors.push({
        type: 'FieldValueNotSupported',
        field: `${field}[${at}].status`,
        value: status,
        detail: 'supported values: "True"',
      });
  });
  if (types.has('Approved') && types.has('Denied'))
    errors.push({
      type: 'FieldValueInvalid',
      field: `${field}[${conditions.findIndex(({ type }) => type === 'Denied')}].type`,
      value: 'Denied',
      detail: 'Approved and Denied conditions are mutually exclusive',
    });
  for (const { type = '' } of partsOf(oldObject).status?.conditions ?? [])
    if (VERDICTS.includes(type) && !types.has(type))
      errors.push({
        type: 'FieldValueForbidden',
        field,
        detail: `updates may not remove a condition of type ${JSON.stringify(type)}`,
      });
  const issued = partsOf(oldObject).status?.certificate;
  if (issued && partsOf(object).status?.certificate !== issued)
    errors.push({
      type: 'FieldValueForbidden',
      field: 'status.certificate',
      detail: 'updates may not modify an existing certificate',
    });
  if (errors.length > 0) throw invalid(KIND, object?.metadata.name ?? '', errors);
}
