/** Which names of resources (`cpu`, `requests.memory`, `example.com/gpu`) are allowed where, in upstream's words. */
import { checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { readQuantity } from '@coracle/apimachinery/quantity/quantity';
import { invalid, invalidEach } from '@coracle/apimachinery/validation/field-errors';

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

const CONTAINER = words('cpu memory ephemeral-storage');
/** Counted one by one. */
const INTEGER = words(
  'pods resourcequotas services replicationcontrollers secrets configmaps persistentvolumeclaims services.nodeports services.loadbalancers',
);
const QUOTA: ReadonlySet<string> = new Set([
  ...CONTAINER,
  ...INTEGER,
  ...words(
    'requests.cpu requests.memory requests.storage requests.ephemeral-storage limits.cpu limits.memory limits.ephemeral-storage',
  ),
]);
const STANDARD: ReadonlySet<string> = new Set([...QUOTA, 'storage']);

const isHugePages = (name: string): boolean => name.startsWith('hugepages-');
const isQuotaHugePages = (name: string): boolean => isHugePages(name) || name.startsWith('requests.hugepages-');
const isNative = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/');
const isExtended = (name: string): boolean =>
  !isNative(name) && !name.startsWith('requests.') && checkQualifiedName(`requests.${name}`).length === 0;

/** True for what a quota can hold without a group before it. */
export const isQuotaResource = (name: string): boolean => QUOTA.has(name) || isQuotaHugePages(name);

/** True when a limit may be larger than what is requested. */
export const mayOvercommit = (name: string): boolean => isNative(name) && !isHugePages(name);

/** Any resource. */
export function checkResourceName(name: string, field: string): FieldError[] {
  const errors = invalidEach(field, name, checkQualifiedName(name));
  if (errors.length > 0 || name.includes('/') || STANDARD.has(name) || isQuotaHugePages(name)) return errors;
  return [invalid(field, name, 'must be a standard resource type or fully qualified')];
}

/** What a container can ask for. */
export function checkContainerResourceName(name: string, field: string): FieldError[] {
  const errors = checkResourceName(name, field);
  if (!name.includes('/')) {
    if (!CONTAINER.has(name) && !isHugePages(name)) {
      errors.push(invalid(field, name, 'must be a standard resource for containers'));
    }
  } else if (!isNative(name) && !isExtended(name)) {
    errors.push(invalid(field, name, "doesn't follow extended resource name standard"));
  }
  return errors;
}

/** What a quota can bound. */
export function checkQuotaResourceName(name: string, field: string): FieldError[] {
  const errors = checkResourceName(name, field);
  if (!name.includes('/') && !isQuotaResource(name)) {
    errors.push(invalid(field, name, 'must be a standard resource for quota'));
  }
  return errors;
}

/** An amount: a quantity, not below zero, whole where things are counted. */
export function checkResourceAmount(name: string, value: unknown, field: string): FieldError[] {
  const amount = readQuantity(value);
  if (!amount) return [];
  const errors: FieldError[] = [];
  if (amount.nano < 0n) errors.push(invalid(field, String(value), 'must be greater than or equal to 0'));
  const whole = amount.nano % 1_000_000_000n === 0n;
  if ((INTEGER.has(name) || isExtended(name)) && !whole) {
    errors.push(invalid(field, String(value), 'must be an integer'));
  }
  return errors;
}
