/** APIServices (kube-aggregator's validation). */
import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import { checkDns1035Label, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, type JsonObject, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { faults, invalid, required } from '@coracle/apimachinery/validation/field-errors';

const MAX_GROUP_PRIORITY = 20_000;
const MAX_VERSION_PRIORITY = 1000;
const MAX_PORT = 65_535;

export function validateApiService(object: JsonObject): readonly FieldError[] {
  const spec = valueAt(object, 'spec');
  const [group, version] = [textAt(spec, 'group'), textAt(spec, 'version')];
  const name = textAt(valueAt(object, 'metadata'), 'name');
  const errors: FieldError[] = [];
  if (name !== `${version}.${group}`) {
    const rule = `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(`${version}.${group}`)}`;
    errors.push(invalid('metadata.name', name, rule));
  }
  if (group !== '') errors.push(...faults('spec.group', group, checkSubdomain(group)));
  errors.push(...faults('spec.version', version, checkDns1035Label(version)));
  errors.push(
    ...withinPriority(spec, { name: 'groupPriorityMinimum', max: MAX_GROUP_PRIORITY }),
    ...withinPriority(spec, { name: 'versionPriority', max: MAX_VERSION_PRIORITY }),
  );
  const service = valueAt(spec, 'service');
  const caBundle = textAt(spec, 'caBundle');
  const insecure = valueAt(spec, 'insecureSkipTLSVerify') === true;
  if (!isObject(service)) {
    if (caBundle !== '') {
      const bytes = `${sizeOf(caBundle)} bytes`;
      errors.push(invalid('spec.caBundle', bytes, 'local APIServices may not have a caBundle'));
    }
    if (insecure) {
      const rule = 'local APIServices may not have insecureSkipTLSVerify';
      errors.push(invalid('spec.insecureSkipTLSVerify', true, rule));
    }
    return errors;
  }
  if (textAt(service, 'namespace') === '') errors.push(required('spec.service.namespace'));
  if (textAt(service, 'name') === '') errors.push(required('spec.service.name'));
  const port = valueAt(service, 'port');
  if (typeof port === 'number' && (port < 1 || port > MAX_PORT)) {
    errors.push(invalid('spec.service.port', port, 'port is not valid: must be between 1 and 65535, inclusive'));
  }
  if (insecure && caBundle !== '') {
    errors.push(invalid('spec.insecureSkipTLSVerify', true, 'may not be true if caBundle is present'));
  }
  return errors;
}

function withinPriority(spec: unknown, { name, max }: { readonly name: string; readonly max: number }): FieldError[] {
  const value = valueAt(spec, name);
  const number = typeof value === 'number' ? value : 0;
  if (number > 0 && number <= max) return [];
  return [invalid(`spec.${name}`, number, `must be positive and less than ${max}`)];
}

function sizeOf(base64: string): number {
  try {
    return decodeBase64(base64).length;
  } catch {
    return base64.length;
  }
}
