/** What `/readyz` responds. */
export interface Readyz {
  readonly status: number;
  readonly components: Readonly<Record<string, string>>;
}

/** Asks a replica's ops port whether it is ready. */
export async function readyz(opsUrl: string): Promise<Readyz> {
  const response = await fetch(`${opsUrl}/readyz`);
  const { components } = (await response.json()) as { components: Record<string, string> };
  return { status: response.status, components };
}

/** The status of `/livez`. */
export async function livez(opsUrl: string): Promise<number> {
  const response = await fetch(`${opsUrl}/livez`);
  await response.arrayBuffer();
  return response.status;
}

/** The sum of a metric's samples, over those whose labels contain the text. NaN when there is none. */
export async function metric(opsUrl: string, name: string, labels = ''): Promise<number> {
  return sampleOf(await scrape(opsUrl), name, labels);
}

/** What `/metrics` responds. Some metrics restart with each scrape. */
export async function scrape(opsUrl: string): Promise<string> {
  return (await fetch(`${opsUrl}/metrics`)).text();
}

/** As `metric`, in what was scraped. */
export function sampleOf(scraped: string, name: string, labels = ''): number {
  const values = scraped
    .split('\n')
    .filter((line) => (line.startsWith(`${name} `) || line.startsWith(`${name}{`)) && line.includes(labels))
    .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
  return values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0);
}
