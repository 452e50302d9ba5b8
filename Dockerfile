# The dashboard in a slim image: built in one stage, run in another without build tools, non-root.
FROM python:3.11-slim AS build
WORKDIR /app
COPY requirements.txt .
RUN python -m venv /app/.venv \
    && /app/.venv/bin/pip install --no-cache-dir --disable-pip-version-check -r requirements.txt \
    && /app/.venv/bin/pip uninstall --yes pip setuptools

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /app draftworth
RUN pip uninstall --yes --root-user-action ignore pip setuptools wheel
WORKDIR /app
COPY --from=build /app/.venv .venv
COPY app.py .
COPY .streamlit .streamlit
COPY lib lib
COPY pages pages
COPY data data
RUN install -d -o draftworth -g root -m 0770 var
ENV PATH=/app/.venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER draftworth
VOLUME /app/var
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD \
    ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["python", "-m", "streamlit", "run", "app.py", "--server.address", "0.0.0.0", "--server.port", "8501"]
