# An image with the program loveseat. It has not been built by the project's CI, which has no Docker engine.
#   docker build -t loveseat .
#   docker run -v trips:/data loveseat create trips
#   docker run -v trips:/data -e LOVESEAT_PASSWORD=s3cret -p 55990:55990 loveseat serve trips --port 55990 --user ana
FROM swift:6.2-noble AS build
RUN apt-get update && apt-get install -y libsqlite3-dev zlib1g-dev libqrencode-dev libisal-dev python3
WORKDIR /src
COPY . .
RUN swift build -c release --static-swift-stdlib --product loveseat -Xlinker -s \
    && cp .build/release/loveseat /usr/local/bin/ \
    && python3 scripts/release/notices.py .build/release loveseat > NOTICES.txt

FROM ubuntu:noble
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libsqlite3-0 zlib1g libqrencode4 libstdc++6 libisal2 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local/bin/loveseat /usr/local/bin/
COPY --from=build /src/LICENSE /src/NOTICES.txt /usr/local/share/doc/loveseat/
RUN useradd --system --uid 10001 --home-dir /data --no-create-home loveseat && install -d -o loveseat -m 700 /data
USER loveseat
WORKDIR /data
ENV LOVESEAT_IDENTITIES=/data/identities
VOLUME /data
EXPOSE 55990
STOPSIGNAL SIGTERM
ENTRYPOINT ["loveseat"]
CMD ["--help"]
