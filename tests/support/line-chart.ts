import { LineChart } from 'echarts/charts';
import { GridComponent, LegendComponent, TitleComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';

/** Readable on white and on black. */
const GREY = '#808890';

interface ChartLine {
  readonly name: string;
  readonly color: string;
  /** A value for each x. */
  readonly data: readonly number[];
}

interface LineChartOptions {
  readonly title: string;
  readonly xName: string;
  readonly xs: readonly (string | number)[];
  readonly lines: readonly ChartLine[];
}

/** A line chart as SVG, readable on a light and on a dark page. */
export function lineChart({ title, xName, xs, lines }: LineChartOptions): string {
  use([LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer]);
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: 640, height: 320 });
  const axis = { axisLabel: { color: GREY }, nameTextStyle: { color: GREY } };
  chart.setOption({
    animation: false,
    title: { text: title, left: 12, top: 8, textStyle: { fontSize: 14, color: GREY } },
    legend: { top: 34, left: 12, itemHeight: 10, textStyle: { color: GREY } },
    grid: { left: 60, right: 30, top: 70, bottom: 50 },
    xAxis: { ...axis, type: 'category', name: xName, nameLocation: 'middle', nameGap: 30, data: [...xs] },
    yAxis: { ...axis, type: 'value', splitLine: { lineStyle: { color: GREY, opacity: 0.3 } } },
    series: lines.map(({ name, color, data }) => ({ type: 'line', name, color, data: [...data] })),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}
